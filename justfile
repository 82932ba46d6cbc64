# The same as CI.
verify:
    .ci/run

# Formats and mends what clippy can mend.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty

# Runs one seed of the world of random faults.
sim SEED:
    REGROW_SEED={{SEED}} cargo test --release -p regrow-runtime --test job_recovery

# Runs many seeds of it.
soak SEEDS="10000":
    REGROW_CASES={{SEEDS}} cargo test --release -p regrow-runtime --test job_recovery

# Rewrites the expected bytes of formats; look at the difference before you commit it.
golden:
    UPDATE_EXPECT=1 cargo test --workspace
