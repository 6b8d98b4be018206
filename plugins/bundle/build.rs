//! Compiles the guests in a cargo of their own and writes a table of them.
//!
//! The nested cargo has its own target folder, because the outer one holds the lock of the other, and
//! a cleaned environment, because flags for the host's target make no sense for a guest. Under clippy
//! the table is empty: the bytes are not looked at, and lint runs should not wait for them.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const TARGET: &str = "wasm32-wasip2";

/// Guests that users get: the folder in `plugins/` and its world.
const SHIPPED: [(&str, &str); 9] = [
    ("aggregator-sum", "aggregator"),
    ("cost-model-npv", "cost-model"),
    ("drift-meter-ajlo", "drift-meter"),
    ("drift-meter-weighted", "drift-meter"),
    ("row-filter-age-off", "row-filter"),
    ("row-filter-hash-sample", "row-filter"),
    ("row-filter-visibility", "row-filter"),
    ("scorer-ajlo-jis", "scorer"),
    ("scorer-bytes-saved", "scorer"),
];

/// Attacks: the file in `plugins/evil/examples/` and its world.
const EVIL: [(&str, &str); 15] = [
    ("alloc", "scorer"),
    ("babble", "scorer"),
    ("counter", "scorer"),
    ("escape", "scorer"),
    ("flood", "scorer"),
    ("infinite", "scorer"),
    ("long", "scorer"),
    ("nan", "scorer"),
    ("offsets", "aggregator"),
    ("recurse", "scorer"),
    ("short", "scorer"),
    ("spin", "scorer"),
    ("spin-configure", "scorer"),
    ("tail", "row-filter"),
    ("trap", "scorer"),
];

/// Attacks that are crates of their own: the folder in `plugins/evil/` and its world.
const EVIL_CRATES: [(&str, &str); 2] = [("shape", "scorer"), ("wasi", "scorer")];

#[expect(clippy::print_stderr, reason = "a build script talks to cargo and its user this way")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("failed to build the plugins: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let plugins = required("CARGO_MANIFEST_DIR").map(PathBuf::from)?.join("..");
    let plugins = plugins
        .canonicalize()
        .map_err(|error| format!("no folder {}: {error}", plugins.display()))?;
    let out = PathBuf::from(required("OUT_DIR")?);
    watch(&plugins);
    let table = if linting() {
        String::from("static SHIPPED: &[Guest] = &[];\nstatic EVIL: &[Guest] = &[];\n")
    } else {
        ensure_target()?;
        let built = out.join("guests");
        compile(&plugins, &built)?;
        table(&built.join(TARGET).join("release"))?
    };
    let path = out.join("guests.rs");
    fs::write(&path, table).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Names everything whose change makes other guests.
fn watch(plugins: &Path) {
    for file in ["Cargo.toml", "Cargo.lock", ".cargo", "sdk", "evil", "../wit"] {
        println!("cargo::rerun-if-changed={}", plugins.join(file).display());
    }
    for (guest, _) in SHIPPED {
        println!("cargo::rerun-if-changed={}", plugins.join(guest).display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    for variable in ["CLIPPY_ARGS", "RUSTC_WORKSPACE_WRAPPER"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
}

fn linting() -> bool {
    env::var_os("CLIPPY_ARGS").is_some()
        || env::var_os("RUSTC_WORKSPACE_WRAPPER")
            .is_some_and(|wrapper| wrapper.to_string_lossy().contains("clippy-driver"))
}

fn required(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"))
}

/// Checks that the compiler has the guests' standard library, and asks rustup for it if not.
fn ensure_target() -> Result<(), String> {
    if has_target()? {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    if let Some(toolchain) = env::var_os("RUSTUP_TOOLCHAIN") {
        rustup.arg("--toolchain").arg(toolchain);
    }
    let advice = format!(
        "the compiler has no library for {TARGET}; run `rustup target add {TARGET}`, or install the \
         rust-std component for {TARGET} of this very compiler version by other means"
    );
    match rustup.status() {
        Err(error) => Err(format!("{advice} (rustup did not start: {error})")),
        Ok(status) if !status.success() => Err(format!("{advice} (rustup ended with {status})")),
        Ok(_) if has_target()? => Ok(()),
        Ok(_) => Err(format!("{advice} (rustup added it to another toolchain)")),
    }
}

fn has_target() -> Result<bool, String> {
    let rustc = required("RUSTC")?;
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("{} did not start: {error}", rustc.to_string_lossy()))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success()
        && fs::read_dir(folder.trim()).is_ok_and(|mut entries| entries.next().is_some()))
}

fn compile(plugins: &Path, built: &Path) -> Result<(), String> {
    let mut cargo = Command::new(required("CARGO")?);
    cargo
        .current_dir(plugins)
        .args(["build", "--workspace", "--lib", "--examples", "--release", "--locked"])
        .args(["--target", TARGET, "--manifest-path"])
        .arg(plugins.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(built);
    for (name, _) in env::vars_os() {
        if !is_kept(&name.to_string_lossy()) {
            cargo.env_remove(&name);
        }
    }
    cargo.env("RUSTC", required("RUSTC")?);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(plugins).join("\u{1f}"));
    let output = cargo.output().map_err(|error| format!("cargo did not start: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("cargo ended with {} in {}:\n{text}", output.status, plugins.display()))
    }
}

/// Tells whether the nested cargo may see a variable: where tools are, and how to reach the network.
fn is_kept(name: &str) -> bool {
    const KEPT: [&str; 3] = ["CARGO_HOME", "CARGO_MAKEFLAGS", "CARGO_NET_OFFLINE"];
    const DROPPED: [&str; 10] = [
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "CLIPPY",
        "DEP_",
        "TARGET",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
    ];
    let network = ["CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];
    KEPT.contains(&name)
        || network.iter().any(|prefix| name.starts_with(prefix))
        || !DROPPED.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the compiler's flags for guests: vector instructions, and no path of this machine in the
/// bytes, so that a guest has the same digest wherever it is built.
fn flags(plugins: &Path) -> Vec<String> {
    let mut flags = vec![String::from("-Ctarget-feature=+simd128")];
    flags.push(format!("--remap-path-prefix={}=plugins", plugins.display()));
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    if let Some(home) = cargo_home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    flags
}

fn table(release: &Path) -> Result<String, String> {
    let file = |name: &str| format!("{}.wasm", name.replace('-', "_"));
    let mut text = String::new();
    let mut list = |title: &str, guests: &[(&str, &str, PathBuf)]| -> Result<(), String> {
        let _ = writeln!(text, "static {title}: &[Guest] = &[");
        for (name, world, path) in guests {
            if !path.is_file() {
                return Err(format!("cargo built no {}", path.display()));
            }
            let _ = writeln!(
                text,
                "    Guest {{ name: {name:?}, world: {world:?}, wasm: include_bytes!({path:?}) }},"
            );
        }
        text.push_str("];\n");
        Ok(())
    };
    let shipped = SHIPPED.map(|(name, world)| (name, world, release.join(file(name))));
    list("SHIPPED", &shipped)?;
    let examples = release.join("examples");
    let mut evil = EVIL.map(|(name, world)| (name, world, examples.join(file(name)))).to_vec();
    let crates = EVIL_CRATES.iter();
    evil.extend(
        crates.map(|(name, world)| (*name, *world, release.join(format!("evil_{name}.wasm")))),
    );
    list("EVIL", &evil)?;
    Ok(text)
}
