//! Working memory that calls on several threads share: each takes a piece, or makes one, and returns it.

use std::fmt;
use std::sync::Mutex;
use tiepoint_gpu::lock;

/// Pieces of working memory that can be used again. An object that holds them can be used by several threads at a time:
/// a call that finds no piece makes a new one, so there are at most as many pieces as calls that ran at the same time.
pub(crate) struct Scratch<T>(Mutex<Vec<T>>);

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for Scratch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scratch({} waiting)", lock(&self.0).len())
    }
}

impl<T> Scratch<T> {
    /// The piece that was returned last, for a caller that keeps it.
    pub(crate) fn take(&self) -> Option<T> {
        lock(&self.0).pop()
    }

    /// Runs `f` with the piece that was returned last, or with a new one. After an error or a panic of `f` the piece is
    /// dropped, so that no half-changed piece is used again.
    pub(crate) fn with<R, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
        f: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut piece = self.take().map_or_else(make, Ok)?;
        let result = f(&mut piece)?;
        lock(&self.0).push(piece);
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_used_again_unless_a_call_failed() {
        let scratch = Scratch::<Vec<u8>>::default();
        let make = || Ok::<_, String>(Vec::new());
        let push = |piece: &mut Vec<u8>| {
            piece.push(1);
            Ok(())
        };
        scratch.with(make, push).unwrap();
        let nested = scratch.with(make, |outer| scratch.with(make, |inner| Ok((outer.len(), inner.len()))));
        assert_eq!(nested.unwrap(), (1, 0), "the second of two calls at a time has a piece of its own");
        assert!(scratch.with(make, |_| Err::<(), _>("fails".to_owned())).is_err(), "the error comes through");
        assert_eq!(lock(&scratch.0).len(), 1, "the piece of the call that failed is gone");
    }
}
