//! `weir bench tpcc`.
#[cfg(feature = "mysql")]
use super::bench::{begin, end};
use super::bench::{measure, options};
use crate::args::Tpcc;
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::open_existing_at;
use anyhow::{Result, ensure};
use weir_bench::tpcc::{Backend, Embedded, Scale, TpccOptions, check_only, run};
use weir_bench::{Acknowledged, Durability, Engine, WorkloadKind};

/// Runs TPC-C, or checks what one left.
pub(crate) fn tpcc(args: &Tpcc) -> Result<u8> {
    if let Some(server) = &args.mysql {
        return mysql(args, server);
    }
    if args.check_only {
        return check(args);
    }
    let options = tpcc_options(args)?;
    let how = if args.pipeline { "pipelined" } else { "each waited for" };
    let what = format!("{} warehouses, commits {how}", options.scale.warehouses);
    measure(&args.common, &options.run, &what, |opened, raw, interrupt, out| {
        let backend = Embedded::new(&opened.engine, options.run.durability, args.isolation);
        let (volume, clock) = (opened.volume.describe(), opened.clock.as_ref());
        run(&backend, &opened.engine, &options, &volume, raw, clock, interrupt, out)
    })
}

fn tpcc_options(args: &Tpcc) -> Result<TpccOptions> {
    let scale = Scale::new(args.warehouses)?;
    let mut run = options(&args.common, WorkloadKind::Tpcc, scale.rows())?;
    if args.restarted {
        run.warmup_seconds = Some(0);
    }
    ensure!(
        !(args.pipeline && run.durability == Durability::Written),
        "--pipeline goes with --durability synced or lazy"
    );
    Ok(TpccOptions {
        run,
        scale,
        pipeline: args.pipeline,
        restarted: args.restarted,
        seed: args.seed,
    })
}

#[cfg(not(feature = "mysql"))]
fn mysql(_: &Tpcc, _: &str) -> Result<u8> {
    anyhow::bail!(
        "this weir was built without a client for servers; build it with \
         cargo build --release -p weir-cli --features mysql"
    )
}

/// On a server: no disk of ours, no log of ours.
#[cfg(feature = "mysql")]
fn mysql(args: &Tpcc, server: &str) -> Result<u8> {
    use weir_bench::tpcc::{Mysql, MysqlOptions};
    ensure!(!args.pipeline, "a server's commits are waited for: no --pipeline with --mysql");
    ensure!(args.common.disk.is_none(), "--disk imitates a disk for weir, not for a server");
    let mut options = tpcc_options(args)?;
    // There is no log here whose wrap would tell when the server is warm.
    options.run.warmup_seconds = options.run.warmup_seconds.or(Some(10));
    let backend = Mysql::open(&MysqlOptions {
        server: server.to_owned(),
        engine: args.engine.clone(),
        isolation: args.isolation,
    })?;
    if args.check_only {
        return checked(args, &backend, server);
    }
    options.run.durability = backend.durability().unwrap_or(options.run.durability);
    let interrupt = begin(&args.common)?;
    let (clock, mut out) = (weir_base::SystemClock::new(), std::io::stdout());
    let (warehouses, threads) = (options.scale.warehouses, options.run.phases.threads_max());
    let about = backend.describe();
    println!("bench tpcc: {warehouses} warehouses, {threads} connections, on {about}");
    let outcome = run(&backend, &backend, &options, about, None, &clock, &interrupt, &mut out)?;
    end(&args.common, &options.run.feed, outcome, Ok(()), &mut out)
}

fn check(args: &Tpcc) -> Result<u8> {
    let dir = &args.common.dir;
    let engine = Engine::new(open_existing_at(dir, args.common.pool)?);
    let backend = Embedded::new(&engine, args.common.durability, args.isolation);
    let code = checked(args, &backend, &dir.display().to_string())?;
    engine.close()?;
    Ok(code)
}

fn checked<B: Backend>(args: &Tpcc, backend: &B, place: &str) -> Result<u8> {
    let acks = args.common.ack_file.as_deref().map(Acknowledged::read).transpose()?;
    let well = check_only(backend, acks.as_ref(), &mut std::io::stdout())?;
    ensure!(well.is_some(), "{place} holds no TPC-C database that was loaded whole");
    Ok(if well == Some(true) { EXIT_OK } else { EXIT_FINDINGS })
}
