//! What a store may have of the machine: a control group with a limit on memory, the kernel's cache
//! of its files included, and on what it writes to the disk.
//!
//! Version 1 or 2 of the kernel's control groups, whichever can be written here. The memory of a
//! page of a file is charged to the group that brought it in, so all cells of a run share one
//! group: a second group would read what the first had paid for.
//! <https://docs.kernel.org/admin-guide/cgroup-v1/memory.html>,
//! <https://docs.kernel.org/admin-guide/cgroup-v2.html>.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// The limits of a run; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory: the process's own, and the kernel's cache of what it reads and writes.
    pub memory_bytes: Option<u64>,
    /// Writes to the disk in a second.
    pub writes_per_second: Option<u64>,
    /// Bytes written to the disk in a second.
    pub write_bytes_per_second: Option<u64>,
}

impl Limits {
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    fn limits_writes(&self) -> bool {
        self.writes_per_second.is_some() || self.write_bytes_per_second.is_some()
    }

    /// In words, for the report.
    pub fn words(&self) -> String {
        let mut all = Vec::new();
        if let Some(bytes) = self.memory_bytes {
            all.push(format!("{} MiB of memory for all of it, cached files included", bytes >> 20));
        }
        if let Some(writes) = self.writes_per_second {
            all.push(format!("{writes} writes a second"));
        }
        if let Some(bytes) = self.write_bytes_per_second {
            all.push(format!("{} MB written a second", bytes / 1_000_000));
        }
        all.join(", ")
    }
}

/// A control group, removed when it goes out of scope.
pub struct Group {
    /// One directory for each hierarchy: two in version 1, one in version 2.
    dirs: Vec<PathBuf>,
    memory: Option<PathBuf>,
    is_v2: bool,
}

impl Group {
    /// A group with these limits, for processes whose files lie in `dir`; none without limits.
    ///
    /// # Errors
    /// In words what cannot be limited here, and what would be needed.
    pub fn new(limits: &Limits, dir: &Path) -> Result<Option<Group>> {
        if limits.is_none() {
            return Ok(None);
        }
        let group = Group::at(Path::new("/sys/fs/cgroup"), limits)?;
        group.limit(limits, dir).context("the kernel refuses a limit")?;
        Ok(Some(group))
    }

    fn at(root: &Path, limits: &Limits) -> Result<Group> {
        let name = format!("rivals-{}", std::process::id());
        let mut wanted = Vec::new();
        wanted.extend(limits.memory_bytes.map(|_| ("memory", "memory")));
        wanted.extend(limits.limits_writes().then_some(("blkio", "io")));
        let offered = std::fs::read_to_string(root.join("cgroup.subtree_control"));
        let mut group = Group { dirs: Vec::new(), memory: None, is_v2: offered.is_ok() };
        if let Ok(offered) = offered {
            for (_, controller) in wanted {
                ensure!(
                    offered.split_whitespace().any(|one| one == controller),
                    "control groups of version 2 here do not offer {controller:?} (see \
                     {}/cgroup.subtree_control); no limits can be set",
                    root.display()
                );
            }
            group.make(root.join(&name))?;
            group.memory = limits.memory_bytes.map(|_| root.join(&name));
            return Ok(group);
        }
        for (controller, _) in wanted {
            let dir = root.join(controller).join(&name);
            group.make(dir.clone())?;
            if controller == "memory" {
                group.memory = Some(dir);
            }
        }
        Ok(group)
    }

    fn make(&mut self, dir: PathBuf) -> Result<()> {
        std::fs::create_dir(&dir).with_context(|| {
            format!(
                "{} cannot be made: limits need a control group (version 1 or 2) that this user \
                 may make, as root outside of most containers may",
                dir.display()
            )
        })?;
        self.dirs.push(dir);
        Ok(())
    }

    fn limit(&self, limits: &Limits, dir: &Path) -> Result<()> {
        if let (Some(group), Some(bytes)) = (&self.memory, limits.memory_bytes) {
            let file = if self.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
            write(&group.join(file), &bytes.to_string())?;
        }
        if !limits.limits_writes() {
            return Ok(());
        }
        let device = device(dir)?;
        let group = self.dirs.last().context("no group")?;
        if self.is_v2 {
            let of = |limit: Option<u64>| limit.map_or("max".to_string(), |n| n.to_string());
            let (writes, bytes) = (of(limits.writes_per_second), of(limits.write_bytes_per_second));
            return write(&group.join("io.max"), &format!("{device} wiops={writes} wbps={bytes}"));
        }
        for (file, limit) in [
            ("blkio.throttle.write_iops_device", limits.writes_per_second),
            ("blkio.throttle.write_bps_device", limits.write_bytes_per_second),
        ] {
            if let Some(limit) = limit {
                write(&group.join(file), &format!("{device} {limit}"))?;
            }
        }
        Ok(())
    }

    /// The files that a process writes its number to, to be in this group.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.dirs.iter().map(|dir| dir.join("cgroup.procs")).collect()
    }

    /// The most memory that was used since the last call, bytes; none where the kernel does not
    /// say.
    pub fn take_peak_bytes(&self) -> Option<u64> {
        let file = if self.is_v2 { "memory.peak" } else { "memory.max_usage_in_bytes" };
        let path = self.memory.as_ref()?.join(file);
        let peak = std::fs::read_to_string(&path).ok()?.trim().parse().ok();
        // Kernels that cannot begin anew go on with the most of all.
        let _ = std::fs::write(&path, "0");
        peak
    }

    /// How many processes of this group the kernel has killed for memory.
    pub fn killed(&self) -> u64 {
        let file = if self.is_v2 { "memory.events" } else { "memory.oom_control" };
        let text =
            self.memory.as_ref().and_then(|dir| std::fs::read_to_string(dir.join(file)).ok());
        let text = text.unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // A process that has just ended is in its group for a moment more.
            for _ in 0..50 {
                if std::fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Puts this process into a group.
pub fn enter(doors: &[PathBuf]) -> Result<()> {
    doors.iter().try_for_each(|door| write(door, &std::process::id().to_string()))
}

fn write(path: &Path, what: &str) -> Result<()> {
    std::fs::write(path, what).with_context(|| format!("{} takes no {what:?}", path.display()))
}

/// The disk that holds `dir`, as the kernel numbers it: a partition's limits are its disk's.
fn device(dir: &Path) -> Result<String> {
    std::fs::create_dir_all(dir)?;
    let number = std::fs::metadata(dir)?.dev();
    let (major, minor) = (libc::major(number), libc::minor(number));
    if major == 0 {
        bail!("{} lies on no disk that the kernel can limit", dir.display());
    }
    let of_partition = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/../dev"));
    match std::fs::read_to_string(&of_partition) {
        Ok(disk) if Path::new(&format!("/sys/dev/block/{major}:{minor}/partition")).exists() => {
            Ok(disk.trim().to_string())
        }
        _ => Ok(format!("{major}:{minor}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limits_there_is_no_group() {
        assert!(Group::new(&Limits::default(), Path::new(".")).unwrap().is_none());
    }

    #[test]
    fn version_1_has_a_directory_for_each_controller_and_leaves_none_behind() {
        let root = tempfile::tempdir().unwrap();
        for controller in ["memory", "blkio"] {
            std::fs::create_dir(root.path().join(controller)).unwrap();
        }
        let limits =
            Limits { memory_bytes: Some(1 << 20), writes_per_second: Some(5), ..Limits::default() };
        let group = Group::at(root.path(), &limits).unwrap();
        assert_eq!((group.doors().len(), group.is_v2), (2, false));
        let memory = group.memory.clone().unwrap();
        std::fs::write(memory.join("memory.oom_control"), "under_oom 0\noom_kill 3\n").unwrap();
        assert_eq!(group.killed(), 3);
        std::fs::remove_file(memory.join("memory.oom_control")).unwrap();
        drop(group);
        assert!(!memory.exists());
    }

    #[test]
    fn what_version_2_does_not_offer_is_said() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("cgroup.subtree_control"), "cpu io\n").unwrap();
        let limits = Limits { memory_bytes: Some(1 << 20), ..Limits::default() };
        let error = Group::at(root.path(), &limits).err().unwrap().to_string();
        assert!(error.contains("memory"), "{error}");
        let limits = Limits { writes_per_second: Some(1), ..Limits::default() };
        assert_eq!(Group::at(root.path(), &limits).unwrap().doors().len(), 1);
    }

    #[test]
    fn where_no_group_can_be_made_it_says_what_is_needed() {
        let limits = Limits { memory_bytes: Some(1 << 20), ..Limits::default() };
        let error = Group::at(Path::new("/nowhere"), &limits).err().unwrap();
        assert!(format!("{error:#}").contains("control group"), "{error:#}");
    }
}
