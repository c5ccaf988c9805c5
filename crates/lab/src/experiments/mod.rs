//! The twelve experiments of `docs/flushing.md` section 5, each as data: what is run, what the
//! seed reports, and how to tell whether its finding holds here. Two more, of bursts and of slow
//! disks, with every policy.
mod bursts;
mod experiment;
mod seed0;
mod seeds;

pub use experiment::Experiment;
pub(crate) use experiment::Work;

/// All of them, by number.
#[must_use]
pub fn all() -> Vec<Experiment> {
    let mut all = seed0::experiments();
    all.extend(seeds::experiments());
    all.extend(bursts::experiments());
    all.sort_by_key(|experiment| experiment.number);
    all
}

/// The one that `text` names by its number.
///
/// # Errors
/// What there is, when there is none of that number.
pub fn find(text: &str) -> Result<Experiment, String> {
    let number = text.parse::<u8>().ok();
    all().into_iter().find(|experiment| Some(experiment.number) == number).ok_or_else(|| {
        let lines = all().into_iter().map(|e| format!("  {:>2}  {}", e.number, e.name));
        let list = lines.collect::<Vec<_>>().join("\n");
        format!("'{text}' is no experiment; there are 'all' and\n{list}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::{Site, options};
    use crate::policies::Kind;
    use std::collections::HashSet;

    #[test]
    fn fourteen_experiments_that_begin_with_deadline() {
        let all = all();
        assert_eq!(all.iter().map(|e| e.number).collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>());
        for experiment in &all {
            for site in [Site::quick(), Site::full()] {
                let site = (experiment.site)(site);
                assert!(site.disk.parse::<weir::DiskSpec>().is_ok(), "{}", site.disk);
                let Work::Arms(arms) = &experiment.work else { continue };
                let arms = arms(&site);
                assert_eq!(arms[0].name, "deadline", "experiment {}", experiment.number);
                for arm in &arms {
                    let options = options(arm, &site, "nowhere".as_ref(), &arm.knobs);
                    let checked = options.and_then(|options| options.check());
                    checked.unwrap_or_else(|error| {
                        panic!("{} {}: {error}", experiment.number, arm.name)
                    });
                }
                let names: HashSet<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
                assert_eq!(names.len(), arms.len(), "experiment {}", experiment.number);
                let originals = arms.iter().filter(|arm| arm.original != "-").count();
                assert!(originals > 0 || experiment.number >= 12, "{}", experiment.number);
            }
        }
    }

    #[test]
    fn every_policy_runs_in_some_experiment() {
        for kind in Kind::ALL {
            let where_it_runs = all().iter().filter(|one| one.has(kind)).count();
            assert!(where_it_runs > 0, "no experiment runs {kind}");
        }
    }

    #[test]
    fn an_unknown_number_lists_them() {
        let error = find("15").err().expect("there is none");
        assert!(
            error.contains("15") && error.contains(" 1  ") && error.contains("14  "),
            "{error}"
        );
        assert_eq!(find("5").expect("it is there").number, 5);
    }
}
