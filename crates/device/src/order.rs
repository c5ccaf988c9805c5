//! Whether one sync may serve two files: what a file system promises about the order in which
//! things come to its disk.
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The device of a directory whose file system [keeps the order](keeps_order); `None` if it does
/// not, or if that cannot be seen.
pub(crate) fn ordered_device(dir: &File) -> Option<u64> {
    let device = dir.metadata().ok()?.dev();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    keeps_order(device, &mounts, &options_of_ext4).then_some(device)
}

/// Whether no file of this device can be found longer after a power failure unless all is there
/// that the device had taken before it grew, of whatever file. ext4 and XFS make a length known
/// by a record of their journal, and have the device flush its cache before they write that
/// (jbd2's commit block, XFS's commit record: `REQ_PREFLUSH`). It holds only with the journal on
/// the same device, with barriers, and for ext4 not with `journal_async_commit`. `mounts` is what
/// `/proc/self/mountinfo` says; `ext4` gives all options of the ext4 on a device (its two numbers),
/// if that has a journal inside.
fn keeps_order(device: u64, mounts: &str, ext4: &dyn Fn((u32, u32)) -> Option<String>) -> bool {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let number = format!("{major}:{minor}");
    let Some(mount) = mounts.lines().find(|line| line.split(' ').nth(2) == Some(&*number)) else {
        return false;
    };
    let Some((_, about)) = mount.split_once(" - ") else { return false };
    let mut words = about.split(' ');
    let (kind, options) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
    match kind {
        "ext4" => ext4((major, minor)).is_some_and(|all| {
            let has = |name: &str| all.lines().any(|option| option == name);
            has("barrier") && !has("journal_async_commit")
        }),
        // It has none by default, so those that it has are there.
        "xfs" => !options.split(',').any(|option| {
            matches!(option.split('=').next(), Some("logdev" | "rtdev" | "nobarrier"))
        }),
        _ => false,
    }
}

/// All options, also those that were set by `tune2fs`, which a list of mounts leaves out; and only
/// with a journal inside of the device: jbd2 lists that as the device's name, a hyphen, and the
/// journal's inode. (One on a device of its own stands there without an inode.)
fn options_of_ext4((major, minor): (u32, u32)) -> Option<String> {
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let name = link.file_name()?.to_str()?;
    let mut journals = std::fs::read_dir("/proc/fs/jbd2").ok()?.flatten();
    journals.find(|journal| is_journal_of(&journal.file_name().to_string_lossy(), name))?;
    std::fs::read_to_string(format!("/proc/fs/ext4/{name}/options")).ok()
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
28 1 8:1 / /a\\040b rw shared:1 master:2 - ext4 /dev/sda1 rw,data=ordered
29 1 8:2 / /x rw,noatime - xfs /dev/sda2 rw,attr2,inode64,noquota
30 1 8:3 / /y rw,noatime - xfs /dev/sda3 rw,logdev=/dev/sdb1,noquota
31 1 8:4 / /z rw,noatime - ext2 /dev/sda4 rw
32 1 0:40 / /o rw,noatime - overlay overlay rw,lowerdir=/l
33 1 253:0 / /m rw,noatime - ext4 /dev/mapper/v-data rw,nodelalloc
34 1 253:1 / /n rw,noatime - ext4 /dev/mapper/v-more rw
35 1 8:5 / /u rw,noatime - xfs /dev/sda5 rw,nobarrier";

    fn keeps(major: u32, minor: u32) -> bool {
        let options = |at: (u32, u32)| match at {
            (8, 1) => Some("rw\nbarrier\ndata=ordered\njournal_async_commit\n".to_owned()),
            (253, 0) => Some("rw\nbarrier\ndata=ordered\ncommit=5\n".to_owned()),
            (253, 1) => Some("rw\nnobarrier\ndata=ordered\n".to_owned()),
            _ => None,
        };
        keeps_order(libc::makedev(major, minor), MOUNTS, &options)
    }

    #[test]
    fn only_where_a_length_is_journalled_behind_a_flush() {
        assert!(!keeps(254, 0), "ext4 without a journal");
        assert!(!keeps(8, 1), "its commit block is not written behind a flush");
        assert!(keeps(8, 2), "XFS");
        assert!(!keeps(8, 3), "the log is elsewhere");
        assert!(!keeps(8, 4), "another file system");
        assert!(!keeps(8, 5), "XFS that does not flush");
        assert!(!keeps(0, 40), "one that lies over another");
        assert!(keeps(253, 0), "ext4");
        assert!(!keeps(253, 1), "ext4 that does not flush");
        assert!(!keeps(9, 9), "not mounted");
        assert!(!keeps_order(libc::makedev(8, 2), "29 1 8:2 / /x rw", &|_| None), "cut off");
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
