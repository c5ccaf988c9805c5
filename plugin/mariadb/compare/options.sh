# How the servers of run.sh and turns.sh are set up, so that both compare the same things: sourced, with POOL_MIB and LOG_MIB.
# Every commit of every engine is synced; so is the binary log, where it is on.
durable_options=(--weir-memory="${POOL_MIB}M" --weir-log-capacity="${LOG_MIB}M" --innodb-buffer-pool-size="${POOL_MIB}M"
	--innodb-log-file-size="${LOG_MIB}M" --innodb-flush-method=O_DIRECT --innodb-flush-log-at-trx-commit=1
	--max-connections=300 --max-prepared-stmt-count=100000)
binlog_options=(--log-bin=binlog --sync-binlog=1 --server-id=1 --binlog-format=ROW --expire-logs-days=1)
