//! Whether one sync may serve two files: what a file system promises about the order in which
//! things come to its disk.
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The device of a directory whose file system [keeps the order](keeps_order); `None` if it does
/// not, or if nobody can tell.
pub(crate) fn ordered_device(dir: &File) -> Option<u64> {
    let device = dir.metadata().ok()?.dev();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    keeps_order(device, &mounts, &has_journal).then_some(device)
}

/// Whether no file of this device can be found longer after a power failure unless all is there
/// that the device had taken before it grew, of whatever file. ext4 and XFS make a length known
/// by a record of their journal, and have the device flush its cache before they write that
/// (jbd2's commit block, XFS's commit record: `REQ_PREFLUSH`). It holds only with the journal on
/// the same device, and for ext4 not with `journal_async_commit`. `mounts` is what
/// `/proc/self/mountinfo` says, `has_journal` whether the ext4 on a device (its two numbers) has
/// one of its own.
fn keeps_order(device: u64, mounts: &str, has_journal: &dyn Fn((u32, u32)) -> bool) -> bool {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let number = format!("{major}:{minor}");
    let Some(mount) = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&*number)) else {
        return false;
    };
    let Some((_, about)) = mount.split_once(" - ") else { return false };
    let mut words = about.split(' ');
    let (kind, options) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
    let has = |name: &str| options.split(',').any(|option| option.split('=').next() == Some(name));
    match kind {
        "ext4" => !has("journal_async_commit") && has_journal((major, minor)),
        "xfs" => !has("logdev") && !has("rtdev"),
        _ => false,
    }
}

/// Whether jbd2 keeps a journal inside of this device: it lists that as the device's name, a
/// hyphen, and the journal's inode. (One on a device of its own stands there without an inode.)
fn has_journal((major, minor): (u32, u32)) -> bool {
    let Ok(link) = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")) else {
        return false;
    };
    let Some(name) = link.file_name().and_then(|name| name.to_str()) else { return false };
    let Ok(journals) = std::fs::read_dir("/proc/fs/jbd2") else { return false };
    journals.flatten().any(|journal| is_journal_of(&journal.file_name().to_string_lossy(), name))
}

fn is_journal_of(journal: &str, device: &str) -> bool {
    let inode = journal.strip_prefix(device).and_then(|rest| rest.strip_prefix('-'));
    inode.is_some_and(|inode| !inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 1 8:1 / /a\\040b rw shared:1 master:2 - ext4 /dev/sda1 rw,journal_async_commit,data=ordered
29 1 8:2 / /x rw,noatime - xfs /dev/sda2 rw,attr2,inode64,noquota
30 1 8:3 / /y rw,noatime - xfs /dev/sda3 rw,logdev=/dev/sdb1,noquota
31 1 8:4 / /z rw,noatime - ext2 /dev/sda4 rw
32 1 0:40 / /o rw,noatime - overlay overlay rw,lowerdir=/l
33 1 253:0 / /m rw,noatime - ext4 /dev/mapper/v-data rw,nodelalloc";

    fn keeps(major: u32, minor: u32) -> bool {
        let journals = |at: (u32, u32)| at != (254, 0);
        keeps_order(libc::makedev(major, minor), MOUNTS, &journals)
    }

    #[test]
    fn only_where_a_length_is_journalled_behind_a_flush() {
        assert!(!keeps(254, 0), "ext4 without a journal");
        assert!(!keeps(8, 1), "its commit block is not written behind a flush");
        assert!(keeps(8, 2), "XFS");
        assert!(!keeps(8, 3), "the log is elsewhere");
        assert!(!keeps(8, 4), "another file system");
        assert!(!keeps(0, 40), "one that lies over another");
        assert!(keeps(253, 0), "ext4");
        assert!(!keeps(9, 9), "not mounted");
        assert!(!keeps_order(libc::makedev(8, 2), "29 1 8:2 / /x rw", &|_| true), "cut off");
    }

    #[test]
    fn a_journal_of_its_own_has_an_inode() {
        assert!(is_journal_of("vda1-8", "vda1"));
        assert!(is_journal_of("dm-0-8", "dm-0"));
        assert!(!is_journal_of("vda1-8", "vda"));
        assert!(!is_journal_of("vda1", "vda1"));
        assert!(!is_journal_of("vda1-", "vda1"));
    }
}
