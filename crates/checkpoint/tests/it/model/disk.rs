//! A FIFO disk with a rate of operations and a bandwidth, as `--disk 2000iops,32MiB`.

/// What the disk can do, and when it does less.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpec {
    /// Operations per second.
    pub(crate) iops: f64,
    /// Bytes per second.
    pub(crate) bytes_per_second: f64,
    /// Length of a slice in seconds: the work of a slice is done at its start (cloud volumes).
    pub(crate) slice_seconds: Option<f64>,
    /// From when (seconds) which factor applies to both rates.
    pub(crate) schedule: Vec<(f64, f64)>,
    /// Start and length (seconds) of spans in which nothing is served.
    pub(crate) stalls: Vec<(f64, f64)>,
    /// From when (seconds) each write of pages takes so much longer (seconds), however many pages
    /// it has; the log's do not.
    pub(crate) page_latency: Vec<(f64, f64)>,
}

impl DiskSpec {
    pub(crate) fn new(iops: f64, mib_per_second: f64) -> Self {
        DiskSpec {
            iops,
            bytes_per_second: mib_per_second * f64::from(1 << 20),
            slice_seconds: None,
            schedule: Vec::new(),
            stalls: Vec::new(),
            page_latency: Vec::new(),
        }
    }

    /// The disk of the issue: `2000iops,32MiB`.
    pub(crate) fn issue() -> Self {
        DiskSpec::new(2000.0, 32.0)
    }

    pub(crate) fn times(mut self, factor: f64) -> Self {
        self.iops *= factor;
        self.bytes_per_second *= factor;
        self
    }

    pub(crate) fn sliced(mut self, seconds: f64) -> Self {
        self.slice_seconds = Some(seconds);
        self
    }

    pub(crate) fn schedule(mut self, schedule: &[(f64, f64)]) -> Self {
        self.schedule = schedule.to_vec();
        self
    }

    pub(crate) fn stalls(mut self, stalls: &[(f64, f64)]) -> Self {
        self.stalls = stalls.to_vec();
        self
    }

    pub(crate) fn page_latency(mut self, latency: &[(f64, f64)]) -> Self {
        self.page_latency = latency.to_vec();
        self
    }

    /// Factor on both rates at `at` seconds.
    pub(crate) fn factor(&self, at: f64) -> f64 {
        self.schedule.iter().rev().find(|(from, _)| *from <= at).map_or(1.0, |(_, factor)| *factor)
    }
}

/// The disk at work: two virtual clocks, one of operations and one of bytes.
#[derive(Debug)]
pub(crate) struct Disk {
    spec: DiskSpec,
    ops_until: f64,
    bytes_until: f64,
}

impl Disk {
    pub(crate) fn new(spec: DiskSpec) -> Self {
        Disk { spec, ops_until: 0.0, bytes_until: 0.0 }
    }

    /// As [`Disk::submit`], for a write of pages.
    pub(crate) fn submit_pages(&mut self, now: f64, ops: u64, bytes: u64) -> f64 {
        let steps = self.spec.page_latency.iter().rev();
        let latency = steps.clone().find(|(from, _)| *from <= now).map_or(0.0, |step| step.1);
        self.submit(now, ops, bytes) + latency
    }

    /// Queues `ops` operations with `bytes` in total behind all that was queued before; returns
    /// when the last is done.
    pub(crate) fn submit(&mut self, now: f64, ops: u64, bytes: u64) -> f64 {
        let mut start = now;
        for &(from, seconds) in &self.spec.stalls {
            let served = self.ops_until.max(self.bytes_until).max(now);
            if served >= from && served < from + seconds {
                start = from + seconds;
            }
        }
        let factor = self.spec.factor(start.max(self.ops_until));
        self.ops_until = self.ops_until.max(start) + ops as f64 / (self.spec.iops * factor);
        self.bytes_until =
            self.bytes_until.max(start) + bytes as f64 / (self.spec.bytes_per_second * factor);
        let done = self.ops_until.max(self.bytes_until);
        match self.spec.slice_seconds {
            Some(slice) => ((done / slice).floor() * slice).max(now),
            None => done,
        }
    }
}
