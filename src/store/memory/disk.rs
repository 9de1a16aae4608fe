//! A disk that fails as disks do.

/// A disk with one file on it, which only grows.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    synced: Vec<u8>,
    /// Written, and lost if the power goes before the next sync.
    pending: Vec<u8>,
    writes_until_full: Option<u64>,
    syncs_until_failure: Option<u64>,
    steps_until_cut: Option<u64>,
    lies: bool,
    dark: bool,
    away: bool,
}

impl Disk {
    /// What is on it, as the next process finds it when the power stays on.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [self.synced.as_slice(), &self.pending].concat()
    }

    /// A disk with these bytes on it.
    #[must_use]
    pub fn with(bytes: Vec<u8>) -> Self {
        Self {
            synced: bytes,
            ..Self::default()
        }
    }

    /// Lets the write after the next `count` find no space, and all that follow.
    pub fn full_after(&mut self, count: u64) {
        self.writes_until_full = Some(count);
    }

    /// Lets the sync after the next `count` fail, and all that follow.
    pub fn fail_sync_after(&mut self, count: u64) {
        self.syncs_until_failure = Some(count);
    }

    /// Lets the power go after this many more writes and syncs.
    pub fn cut_after(&mut self, steps: u64) {
        self.steps_until_cut = Some(steps);
    }

    /// Takes the file away: no write finds it until it is put back.
    pub fn take_away(&mut self) {
        self.away = true;
    }

    /// Puts the file back.
    pub fn put_back(&mut self) {
        self.away = false;
    }

    /// Makes it say that bytes are durable when they are not: the bug that tests must catch.
    pub fn lie_about_syncs(&mut self) {
        self.lies = true;
    }

    /// What a power cut leaves: everything that was synced, and of the rest the first `kept` bytes; the
    /// last of those are not what was written when `garbled` says so.
    #[must_use]
    pub fn after_power_cut(&self, kept: usize, garbled: Garbled) -> Self {
        let kept = kept.min(self.pending.len());
        let mut torn = self.pending.get(..kept).unwrap_or_default().to_vec();
        if let Garbled::LastByte(pattern) = garbled
            && let Some(last) = torn.last_mut()
        {
            *last ^= pattern;
        }
        Self::with([self.synced.as_slice(), &torn].concat())
    }

    /// Bytes that a power cut would put at risk.
    #[must_use]
    pub fn at_risk(&self) -> usize {
        self.pending.len()
    }

    /// Takes all faults away.
    pub(super) fn repair(&mut self) {
        let bytes = self.bytes();
        *self = Self::with(bytes);
    }

    /// Takes what lies behind this many bytes away.
    pub(super) fn truncate(&mut self, length: usize) {
        self.synced = self.bytes();
        self.synced.truncate(length);
        self.pending.clear();
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.step()?;
        if count_down(&mut self.writes_until_full) {
            return Err("no space left on device".to_owned());
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), String> {
        self.step()?;
        if count_down(&mut self.syncs_until_failure) {
            return Err("input/output error".to_owned());
        }
        if !self.lies {
            self.synced.append(&mut self.pending);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.dark |= count_down(&mut self.steps_until_cut);
        if self.dark {
            return Err("the power is off".to_owned());
        }
        if self.away {
            return Err("the file is gone".to_owned());
        }
        Ok(())
    }
}

/// Whether the last bytes that a power cut left are the ones that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbled {
    /// They are.
    No,
    /// The last byte has these bits turned.
    LastByte(u8),
}

/// Counts down to a fault; says whether it has come.
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
