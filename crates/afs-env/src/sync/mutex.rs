//! A lock that may be held while waiting for something.

use std::ops::{Deref, DerefMut};

use parking_lot::Mutex as StdMutex;

use super::semaphore::{Permit, Semaphore};

/// A fair asynchronous lock. For data touched only between two awaits, `parking_lot::Mutex` is the better one.
pub struct Mutex<T> {
    turn: Semaphore,
    /// Empty while somebody holds the lock: the guard owns the value, so that it can move between threads.
    value: StdMutex<Option<Box<T>>>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { turn: Semaphore::new(1), value: StdMutex::new(Some(Box::new(value))) }
    }

    /// Waits for its turn. Dropping the guard lets the next one in.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        loop {
            let turn = self.turn.acquire().await;
            if let Some(guard) = self.guard(turn) {
                return guard;
            }
        }
    }

    /// The lock if it is free at this moment.
    #[must_use]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.turn.try_acquire().and_then(|turn| self.guard(turn))
    }

    fn guard(&self, turn: Permit) -> Option<MutexGuard<'_, T>> {
        let value = self.value.lock().take()?;
        Some(MutexGuard { mutex: self, value: Some(value), _turn: turn })
    }
}

/// The right to use the value.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// Present until the guard is dropped.
    value: Option<Box<T>>,
    _turn: Permit,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("a guard holds the value until it is dropped"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("a guard holds the value until it is dropped"),
        }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    /// The value goes back before the turn passes on (fields drop after this body).
    fn drop(&mut self) {
        *self.mutex.value.lock() = self.value.take();
    }
}
