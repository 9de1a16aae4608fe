//! Simulated disk with faults.

use std::io;

/// A disk with one append-only file.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    synced: Vec<u8>,
    /// Written, but lost if the power fails before the next sync.
    pending: Vec<u8>,
    writes_until_full: Option<u64>,
    syncs_until_failure: Option<u64>,
    steps_until_cut: Option<u64>,
    lies: bool,
    dark: bool,
    away: bool,
}

impl SimulatedDisk {
    /// Content as the next process finds it if the power stays on.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [self.synced.as_slice(), &self.pending].concat()
    }

    /// Creates a disk with these bytes.
    #[must_use]
    pub fn with(bytes: Vec<u8>) -> Self {
        Self {
            synced: bytes,
            ..Self::default()
        }
    }

    /// Makes the write after the next `count` writes find no space, and all later writes.
    pub fn full_after(&mut self, count: u64) {
        self.writes_until_full = Some(count);
    }

    /// Makes the sync after the next `count` syncs fail, and all later syncs.
    pub fn fail_sync_after(&mut self, count: u64) {
        self.syncs_until_failure = Some(count);
    }

    /// Cuts the power after this many more writes and syncs.
    pub fn cut_after(&mut self, steps: u64) {
        self.steps_until_cut = Some(steps);
    }

    /// Removes the file: writes fail until [`SimulatedDisk::put_back`].
    pub fn remove_file(&mut self) {
        self.away = true;
    }

    /// Restores the file.
    pub fn put_back(&mut self) {
        self.away = false;
    }

    /// Makes the disk report bytes as durable when they are not: the bug that tests must catch.
    pub fn lie_about_syncs(&mut self) {
        self.lies = true;
    }

    /// Content after a power cut: all synced bytes, and the first `kept` unsynced bytes, the last of them
    /// corrupted if `garbled` says so.
    #[must_use]
    pub fn after_power_cut(&self, kept: usize, garbled: Corruption) -> Self {
        let kept = kept.min(self.pending.len());
        let mut torn = self.pending.get(..kept).unwrap_or_default().to_vec();
        if let Corruption::LastByte(pattern) = garbled
            && let Some(last) = torn.last_mut()
        {
            *last ^= pattern;
        }
        Self::with([self.synced.as_slice(), &torn].concat())
    }

    /// Number of bytes that a power cut would put at risk.
    #[must_use]
    pub fn unsynced_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Clears all faults.
    pub(super) fn repair(&mut self) {
        let bytes = self.bytes();
        *self = Self::with(bytes);
    }

    /// Truncates the content to this many bytes.
    pub(super) fn truncate(&mut self, length: usize) {
        self.synced = self.bytes();
        self.synced.truncate(length);
        self.pending.clear();
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        if count_down(&mut self.writes_until_full) {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left on device",
            ));
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.step()?;
        if count_down(&mut self.syncs_until_failure) {
            return Err(io::Error::other("input/output error"));
        }
        if !self.lies {
            self.synced.append(&mut self.pending);
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<()> {
        self.dark |= count_down(&mut self.steps_until_cut);
        if self.dark {
            return Err(io::Error::other("the power is off"));
        }
        if self.away {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file is gone"));
        }
        Ok(())
    }
}

/// Corruption of the last byte that a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// No corruption.
    No,
    /// These bits of the last byte are flipped.
    LastByte(u8),
}

/// Counts down to a fault. Returns true once the fault is due.
fn count_down(left: &mut Option<u64>) -> bool {
    match left {
        None => false,
        Some(0) => true,
        Some(left) => {
            *left -= 1;
            false
        }
    }
}
