//! How much memory this process may use: the machine's, or less where a control group (a
//! container, a systemd unit) is allowed less. Sources: cgroups(7), proc(5), and the kernel's
//! `admin-guide/cgroup-v1/memory.rst` and `admin-guide/cgroup-v2.rst`.
use std::path::{Path, PathBuf};

/// The memory in bytes that this process may use, as the system says it: the machine's, or the
/// least limit of the control groups that the process is in (versions 1 and 2). `None`: the system
/// does not say. Limits may change while the process runs; each call looks anew.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|meminfo| total_of(&meminfo));
    let group = group_limit(&read);
    machine.into_iter().chain(group).min()
}

/// The line `MemTotal` in bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the process's control groups, all the way up to the root that it sees.
fn group_limit(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let mounts = mounts.lines().filter_map(Mount::parse);
    mounts.filter_map(|mount| mount.limit(&groups, read)).min()
}

/// A mounted hierarchy of control groups that knows of memory.
struct Mount<'a> {
    /// Which group the mount's top directory is.
    root: &'a str,
    at: PathBuf,
    is_v2: bool,
}

impl<'a> Mount<'a> {
    /// From a line of `mountinfo`: `36 35 98:0 ROOT AT OPTIONS [FIELDS] - TYPE SOURCE SUPER`.
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let mut kind = kind.split(' ');
        let is_v2 = match kind.next()? {
            "cgroup2" => true,
            "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        // The kernel writes a space in a path as an octal number.
        Some(Mount { root, at: PathBuf::from(at.replace("\\040", " ")), is_v2 })
    }

    fn limit(&self, groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
        let file = if self.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let group = groups.lines().find_map(|line| self.group_of(line))?;
        // A container may see a group's name that its own mount does not have: then the mount's
        // top directory is the group.
        let below = group.strip_prefix(self.root).unwrap_or(group).trim_start_matches('/');
        let mut at = self.at.join(below);
        let mut least: Option<u64> = None;
        loop {
            // "max" is no number and no limit.
            let limit = read(&at.join(file)).and_then(|text| text.trim().parse::<u64>().ok());
            least = least.into_iter().chain(limit).min();
            if at == self.at || !at.pop() {
                return least;
            }
        }
    }

    /// The group in a line of `/proc/self/cgroup` (`ID:CONTROLLERS:GROUP`), if it is of this
    /// hierarchy.
    fn group_of<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (id, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let is_mine = match self.is_v2 {
            true => id == "0" && controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_mine.then_some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "25 19 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "30 19 0:23 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n\
        31 30 0:24 / /sys/fs/cgroup/cpu rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n\
        32 30 0:25 /docker/ab /sys/fs/cgroup/memory ro master:11 - cgroup cgroup rw,memory\n";

    /// The limit of a process in such groups, with these files.
    fn limit(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &Path| match path.to_str()? {
            "/proc/self/cgroup" => Some(groups.to_owned()),
            "/proc/self/mountinfo" => Some(mounts.to_owned()),
            path => files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned()),
        };
        group_limit(&read)
    }

    #[test]
    fn the_least_limit_from_the_group_up_to_the_root_counts() {
        let own = ("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
        let above = ("/sys/fs/cgroup/a.slice/memory.max", "314572800\n");
        let groups = "0::/a.slice/b.service\n";
        assert_eq!(limit(V2, groups, &[own]), None);
        assert_eq!(limit(V2, groups, &[own, above]), Some(300 << 20));
        let own = (own.0, "1000\n");
        assert_eq!(limit(V2, groups, &[own, above]), Some(1_000));
        // In a container with a name space of its own.
        assert_eq!(limit(V2, "0::/\n", &[("/sys/fs/cgroup/memory.max", "5000\n")]), Some(5_000));
        assert_eq!(limit("", groups, &[own, above]), None);
    }

    #[test]
    fn a_group_of_version_1_is_found_below_what_is_mounted() {
        let groups = "12:memory:/docker/ab/inner\n3:cpu,cpuacct:/docker/ab\n0::/\n";
        let top = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let inner = ("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "4096\n");
        assert_eq!(limit(V1, groups, &[top, inner]), Some(4_096));
        assert_eq!(limit(V1, groups, &[top]), Some(9_223_372_036_854_771_712));
        // The process sees the host's name of its group, the mount begins at the group.
        let top = (top.0, "8192\n");
        assert_eq!(limit(V1, "12:memory:/docker/other\n", &[top]), Some(8_192));
        // Both hierarchies: the limits are where the memory controller is.
        let both = format!("{V1}33 30 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        assert_eq!(limit(&both, groups, &[top, inner]), Some(4_096));
    }

    #[test]
    fn the_machine_says_how_much_it_has() {
        let meminfo = "MemTotal:       24689300 kB\nMemFree:        23 kB\n";
        assert_eq!(total_of(meminfo), Some(24_689_300 << 10));
        for strange in ["", "MemFree: 1 kB", "MemTotal: kB", "MemTotal: 99999999999999999 kB"] {
            assert_eq!(total_of(strange), None, "{strange}");
        }
        assert!(memory_bytes().is_some_and(|bytes| bytes > 16 << 20), "Linux says so");
    }
}
