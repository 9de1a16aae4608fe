# Lists the recipes.
default:
    @just --list

# Checks everything that must hold before a change lands.
ci:
    .ci/run

# Runs all tests, or those that match.
test *FILTER:
    cargo test --locked {{FILTER}}

# Runs the tests of the real program in a terminal.
e2e *FILTER:
    cargo test --locked --test e2e {{FILTER}}

# Runs real coding agents against the real program, offline.
agents *FLAGS:
    tests/agents/run {{FLAGS}}

# Writes generated files anew. Read `git diff` afterwards.
bless:
    UPDATE_CONFORMANCE=1 UPDATE_DOCS=1 UPDATE_MODULE=1 UPDATE_SNAPSHOTS=1 INSTA_UPDATE=always cargo test --locked --test suite
    UPDATE_PICTURES=1 INSTA_UPDATE=always cargo test --locked --lib

# Opens the console with simulated agents.
demo:
    cargo run --locked --release -- demo

# Measures; name a bench, or all are run.
bench *NAME:
    cargo bench --locked {{ if NAME == "" { "" } else { "--bench " + NAME } }}
