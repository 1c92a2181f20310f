use super::{BroadcastChoices, Choice, CommunicatorShape, Prediction, Table};

/// By what the user wants broadcasts to be chosen. The library and `polycast explain` both ask here, so they agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rules<'a> {
    /// By the table that polycast comes with, and by prediction where parameters are known.
    Shipped,
    /// By the user's table, which predictions do not overrule.
    Table(&'a Table),
    /// Always the same.
    Forced(Choice),
}

impl<'a> Rules<'a> {
    /// What decides on a communicator of this shape: a forced multicast needs a network that carries it.
    pub fn in_force(self, shape: CommunicatorShape) -> Rules<'a> {
        match self {
            Rules::Forced(choice) if choice.needs_multicast() && !shape.has_multicast => Rules::Shipped,
            rules => rules,
        }
    }

    /// The choices for all sizes; `shipped` is the table that polycast comes with.
    pub fn choices(
        self,
        shape: CommunicatorShape,
        shipped: &Table,
        prediction: Option<&Prediction>,
    ) -> BroadcastChoices {
        match (self.in_force(shape), prediction) {
            (Rules::Forced(choice), _) => BroadcastChoices::always(choice),
            (Rules::Table(table), _) => table.broadcast_rules(shape),
            (Rules::Shipped, Some(prediction)) => shipped.broadcast_rules_and(shape, prediction),
            (Rules::Shipped, None) => shipped.broadcast_rules(shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_multicast_without_multicast_leaves_it_to_the_shipped_table() {
        let shipped = Table::shipped();
        let with = CommunicatorShape::new(16, 16, None).unwrap();
        let without = with.without_multicast();
        for (choice, falls_back) in [("multicast-pull", true), ("chain", false), ("stock", false)] {
            let choice: Choice = choice.parse().unwrap();
            let rules = Rules::Forced(choice);
            assert_eq!(rules.choices(with, &shipped, None), BroadcastChoices::always(choice));
            let expected =
                if falls_back { shipped.broadcast_rules(without) } else { BroadcastChoices::always(choice) };
            assert_eq!(rules.choices(without, &shipped, None), expected, "{choice}");
        }
    }
}
