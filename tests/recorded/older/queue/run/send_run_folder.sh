set -eu
ssh='python3 @DISK@/runs/@RUN@/agent batch.step @DISK@/runs/@RUN@'
run=@DISK@/runs/@RUN@
node=$1
tar -C "$run" -cf - --exclude=__pycache__ agent job.json program.json \
  | $ssh "$node" "mkdir -p '$run' && cd '$run' && rm -rf ranks_ended.jsonl stopped logdir && ln -s '@DISK@/runs/@RUN@/logdir' logdir && tar -xf -"
