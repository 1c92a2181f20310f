//! The exit status of a verb that ends with an error: 2 where its words were wrong, 1 where something failed.

use std::error::Error;

use polycast_core::policy::CommunicatorShapeError;
use polycast_lab::LabError;

use polycast_cli_console::usage::WrongUsage;
use polycast_cli_launch::hosts::{HostsError, UnknownHosts};
use polycast_cli_launch::mpi::ResolveError;
use polycast_cli_launch::place::PlaceError;
use polycast_cli_measuring::ParseGridError;
use polycast_cli_results::sizes::SizesError;
use polycast_cli_results::variant::VariantsError;
use polycast_cli_serving::commands::predict::{AgainstError, NotPredictable, RootError};

/// The exit status for an error. Files that are not there or hold something else, and programs that
/// are not installed, are failures: the words that name them may be right.
pub fn status_of(error: &(dyn Error + 'static)) -> u8 {
    fn is<E: Error + 'static>(error: &(dyn Error + 'static), of: impl FnOnce(&E) -> bool) -> bool {
        error.downcast_ref::<E>().is_some_and(of)
    }
    let is_usage = error.is::<WrongUsage>()
        || error.is::<UnknownHosts>()
        || error.is::<CommunicatorShapeError>()
        || error.is::<PlaceError>()
        || error.is::<RootError>()
        || error.is::<NotPredictable>()
        || error.is::<SizesError>()
        || error.is::<VariantsError>()
        || error.is::<ParseGridError>()
        || is(error, |error: &AgainstError| matches!(error, AgainstError::Root { .. }))
        || is(error, |error: &HostsError| {
            use HostsError::{EmptyFile, Line, UnreadableFile};
            !matches!(error, UnreadableFile { .. } | Line { .. } | EmptyFile { .. })
        })
        || is(error, |error: &ResolveError| {
            matches!(error, ResolveError::NotFound { .. } | ResolveError::OtherFamily { .. })
        })
        || is(error, LabError::is_usage);
    if is_usage { 2 } else { 1 }
}
