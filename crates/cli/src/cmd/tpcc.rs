//! `weir bench tpcc`.
use super::bench::{measure, options};
use crate::args::Tpcc;
use crate::opening::open_existing_at;
use crate::{EXIT_FINDINGS, EXIT_OK};
use anyhow::{Result, ensure};
use weir_bench::tpcc::{Embedded, Scale, TpccOptions, check_only, run};
use weir_bench::{Acknowledged, Durability, Engine, WorkloadKind};

/// Runs TPC-C, or checks what one left.
pub(crate) fn tpcc(args: &Tpcc) -> Result<u8> {
    if args.check_only {
        return check(args);
    }
    let scale = Scale::new(args.warehouses)?;
    let run_options = options(&args.common, WorkloadKind::Tpcc, scale.rows())?;
    let options = TpccOptions { run: run_options, scale, pipeline: args.pipeline, seed: args.seed };
    ensure!(
        !(options.pipeline && options.run.durability == Durability::Written),
        "--pipeline goes with --durability synced or lazy"
    );
    let how = if args.pipeline { "pipelined" } else { "each waited for" };
    let what = format!("{} warehouses, commits {how}", scale.warehouses);
    measure(&args.common, &options.run, &what, |opened, raw, interrupt, out| {
        let backend = Embedded::new(&opened.engine, options.run.durability, args.isolation);
        let (volume, clock) = (opened.volume.describe(), opened.clock.as_ref());
        run(&backend, &opened.engine, &options, &volume, raw, clock, interrupt, out)
    })
}

fn check(args: &Tpcc) -> Result<u8> {
    let (dir, acks) = (&args.common.dir, &args.common.ack_file);
    let acks = acks.as_deref().map(Acknowledged::read).transpose()?;
    let engine = Engine::new(open_existing_at(dir, args.common.pool)?);
    let backend = Embedded::new(&engine, args.common.durability, args.isolation);
    let well = check_only(&backend, acks.as_ref(), &mut std::io::stdout())?;
    ensure!(well.is_some(), "{} holds no TPC-C database that was loaded whole", dir.display());
    engine.close()?;
    Ok(if well == Some(true) { EXIT_OK } else { EXIT_FINDINGS })
}
