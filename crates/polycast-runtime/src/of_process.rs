//! State of this process. In tests ranks are threads, and each has its own.

use std::sync::{Mutex, PoisonError};

#[cfg(not(test))]
macro_rules! of_process {
    ($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$about])*
        static $name: crate::of_process::Key<$type> = crate::of_process::Key($value);
    };
}

#[cfg(test)]
macro_rules! of_process {
    ($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;) => {
        thread_local! { $(#[$about])* static $name: $type = const { $value }; }
    };
}
pub(crate) use of_process;

#[cfg(test)]
type Key<T> = std::thread::LocalKey<T>;

/// State of the process, with the method by which a thread's state is reached in tests.
#[cfg(not(test))]
pub struct Key<T>(pub T);

#[cfg(not(test))]
impl<T> Key<T> {
    #[inline]
    pub fn with<R>(&'static self, work: impl FnOnce(&T) -> R) -> R {
        work(&self.0)
    }
}

/// Changes state under its lock. A thread that panicked under the lock has left a state with which the
/// others go on.
pub fn change<T, R>(shared: &Mutex<T>, change: impl FnOnce(&mut T) -> R) -> R {
    change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// State that several threads of a process change.
pub trait Shared<T> {
    /// Changes the state under its lock, as [`change`] does.
    fn change<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R;
}

impl<T: 'static> Shared<T> for Key<Mutex<T>> {
    fn change<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R {
        self.with(|shared| self::change(shared, change))
    }
}
