//! What the user wants, from forced choices to the table that polycast comes with.

use super::{Choice, Collective, Prediction, ServedSums, Table};

/// The forced choices, tables and predictions that decide about the calls on a communicator, from
/// its first to its last.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Choices that the user forces. Each serves every call of its collective, where the
    /// communicator has what it needs.
    forced: &'a [(Collective, Choice)],
    /// The user's table, if there is one, and the table that polycast comes with.
    tables: (Option<&'a Table>, &'a Table),
    prediction: Option<&'a Prediction>,
    /// The user's word on sums, if it is not the table's.
    sums: Option<ServedSums>,
    /// The table for sums for which no other one has a way, where all are served.
    of_sums: Option<&'a Table>,
    /// True if what no rule serves is compared with challengers.
    challenges: bool,
}

impl<'a> Rules<'a> {
    /// Puts together what the user wants. A collective for which a choice is `forced` asks no table
    /// of the `user`, and asks the shipped one where that choice cannot be had. Predictions do not
    /// overrule the user's table.
    pub fn new(
        forced: &'a [(Collective, Choice)],
        user: Option<&'a Table>,
        shipped: &'a Table,
        prediction: Option<&'a Prediction>,
    ) -> Rules<'a> {
        Rules { forced, tables: (user, shipped), prediction, sums: None, of_sums: None, challenges: false }
    }

    /// Returns the rules with the user's word on sums, which counts before that of a table, and the
    /// table for sums for which no other one has a way, where all are served.
    pub fn with_sums(self, said: Option<ServedSums>, of_sums: &'a Table) -> Rules<'a> {
        Rules { sums: said, of_sums: Some(of_sums), ..self }
    }

    /// The sums that are served.
    pub fn sums(&self) -> ServedSums {
        let of_table = self.tables.0.and_then(|table| table.sums);
        self.sums.or(of_table).unwrap_or_default()
    }

    /// The table for sums for which no other one has a way, where all are served.
    pub fn table_of_sums(&self) -> Option<&'a Table> {
        self.of_sums.filter(|_| self.sums() == ServedSums::Canonical)
    }

    /// Returns the rules with challengers for calls that the shipped table leaves to the MPI, if
    /// `challenges`.
    pub fn with_challengers(self, challenges: bool) -> Rules<'a> {
        Rules { challenges, ..self }
    }

    /// Whether calls of a collective that the rules leave to the MPI have challengers. What the
    /// user says about a collective stands.
    pub(super) fn challenges(&self, collective: Collective) -> bool {
        self.challenges && self.forced(collective).is_none() && self.user(collective).is_none()
    }

    /// The choice that the user forces for all calls of a collective, if there is one.
    pub fn forced(&self, collective: Collective) -> Option<Choice> {
        self.forced.iter().find(|(of, _)| *of == collective).map(|(_, choice)| *choice)
    }

    fn user(&self, collective: Collective) -> Option<&'a Table> {
        self.tables.0.filter(|_| self.forced(collective).is_none())
    }

    /// The table that decides about the calls of a collective for which nothing is forced, or where that cannot be had.
    pub fn table(&self, collective: Collective) -> &'a Table {
        self.user(collective).unwrap_or(self.tables.1)
    }

    /// The prediction that chooses among trees in the table's place, if there is one for the
    /// collective. The rules for stock and multicast stand: predictions know of neither, and of one
    /// collective only.
    pub fn prediction(&self, collective: Collective) -> Option<&'a Prediction> {
        self.prediction.filter(|_| collective == Prediction::COLLECTIVE && self.user(collective).is_none())
    }
}
