//! The meaning of DEST: a folder that the files go into, or their name. Where folders are copied
//! and DEST is there on some nodes only, as after a copy that came to its end on them, they would
//! be at different places.

/// The name of the first node that was ready, and whether DEST is a folder there.
#[derive(Debug, Default)]
pub struct Place(Option<(String, bool)>);

impl Place {
    /// Notes what a node that is ready has found; an error if that is not the same as on the first
    /// one.
    pub fn is_the_same(&mut self, host: &str, into_folder: bool) -> Result<(), String> {
        let (first, is_folder) = self.0.get_or_insert_with(|| (host.to_owned(), into_folder));
        let (there, missing) = match (into_folder, *is_folder) {
            (true, false) => (host, &**first),
            (false, true) => (&**first, host),
            _ => return Ok(()),
        };
        Err(format!(
            "DEST is a folder on {there} and not on {missing}: copy to those that lack it alone, or end it with a slash, and the files go into a folder of that name everywhere"
        ))
    }
}
