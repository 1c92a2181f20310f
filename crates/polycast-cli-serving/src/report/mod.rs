//! What jobs and measurements have left, for people: one page, or what other tools read.
//!
//! ```text
//!     load        the traces of a folder, and what is wrong with them
//!     summary     calls by collective, size and choice; phases, lateness, repairs
//!         gains       what trials found, from the report beside the traces
//!     jobs        the reports of jobs, one or many
//!     results     what bench, tune and simulate wrote, as charts
//!         scaling     those of simulate --scaling
//!     page        HTML without anything from outside: page/style.css, page/script.js
//!         html        its tables
//!         timeline    the numbers that the script draws
//!     perfetto    events for trace viewers
//!     arrivals    when ranks called, for `bench --arrival`
//! ```

pub mod arrivals;
mod gains;
mod html;
pub mod jobs;
pub mod load;
pub mod page;
pub mod perfetto;
pub mod results;
pub mod summary;
mod timeline;
