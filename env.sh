# Source this in the project folder, in sh, dash, bash or zsh:  . ./env.sh
# Afterwards the plain commands work: pulumi up -s local, pulumi preview -s p100, fab --list.
if [ -f ./microcluster/setup/environment.env ]; then
    MICROCLUSTER_HOME=${MICROCLUSTER_HOME:-$HOME/.microcluster}
    case $MICROCLUSTER_HOME in
        /*) ;;
        *) MICROCLUSTER_HOME=$PWD/$MICROCLUSTER_HOME ;;
    esac
    export MICROCLUSTER_HOME
    set -a
    . ./microcluster/setup/environment.env
    set +a
    case :$PATH: in
        *":$PWD/.venv/bin:"*) ;;
        *) export PATH="$PWD/.venv/bin:$PATH" ;;
    esac
    if [ -x ./.venv/bin/pulumi ]; then
        (
            all=0 lacking=0
            for file in ./stacks/Pulumi.*.yaml; do
                name=${file#./stacks/Pulumi.} all=$((all + 1))
                [ -e "$MICROCLUSTER_HOME/state/.pulumi/stacks/microcluster/${name%.yaml}.json" ] || lacking=$((lacking + 1))
            done
            [ $lacking -eq 0 ] || echo "env.sh: $lacking of $all stacks have no state yet; pulumi answers 'no stack named' or" \
                "'unable to open state directory' for them. Run: make setup" >&2
        )
    else
        echo "env.sh: nothing is installed in this folder yet. Run: make setup" >&2
    fi
else
    echo "env.sh: there is no project in $PWD. Change to the project folder, then repeat: . ./env.sh" >&2
fi
