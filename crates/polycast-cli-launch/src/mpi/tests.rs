use super::*;

const PLAIN: Surroundings = Surroundings { cores: 2, is_root: false, allocation: None };

fn mpi(launcher: Launcher, version: (u32, u32, u32)) -> Mpi {
    let version = Version::new(version.0, version.1, version.2);
    Mpi { path: "mpiexec".into(), launcher, version }
}

fn line(mpi: &Mpi, surroundings: &Surroundings, launch: &Launch) -> String {
    let command = mpi.command_in(surroundings, launch, &["./a.out".into(), "7".into()]);
    let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
    words.join(" ")
}

/// Three emulated hosts with one rank each on two cores.
fn emulated() -> Launch {
    Launch {
        ranks: Some(3),
        further: vec![],
        hosts: ["h0", "h1", "h2"].map(|host| (host.to_owned(), 1)).into(),
        agent: Some("/opt/agent".into()),
        interface: Some("e0".into()),
        env: vec![("LD_PRELOAD".into(), "/lib/polycast.so".into())],
        extra: vec!["--tag-output".into()],
    }
}

fn uneven() -> Launch {
    Launch { ranks: Some(3), hosts: vec![("a".into(), 1), ("b".into(), 2)], ..Launch::default() }
}

#[test]
fn open_mpi_4_across_emulated_hosts() {
    assert_eq!(
        line(&mpi(Launcher::Orte, (4, 1, 4)), &PLAIN, &emulated()),
        "--mca plm_rsh_agent /opt/agent --mca oob_tcp_if_include e0 --mca btl tcp,self \
         --mca btl_tcp_if_include e0 --mca mpi_yield_when_idle 1 --host h0:1,h1:1,h2:1 --oversubscribe \
         --bind-to none -n 3 -x LD_PRELOAD=/lib/polycast.so --tag-output ./a.out 7"
    );
}

#[test]
fn open_mpi_5_across_emulated_hosts() {
    assert_eq!(
        line(&mpi(Launcher::Prrte, (5, 0, 11)), &PLAIN, &emulated()),
        "--prtemca plm_ssh_agent /opt/agent --mca pml ob1 --mca btl tcp,self \
         --mca btl_tcp_if_include e0 --mca mpi_yield_when_idle 1 --host h0:1,h1:1,h2:1 \
         --map-by ppr:1:node:oversubscribe --bind-to none -n 3 -x LD_PRELOAD=/lib/polycast.so --tag-output \
         ./a.out 7"
    );
}

#[test]
fn mpich_across_emulated_hosts_throttles_where_it_can() {
    let with_throttle = line(&mpi(Launcher::Hydra, (5, 0, 2)), &PLAIN, &emulated());
    assert_eq!(
        with_throttle,
        "-launcher ssh -launcher-exec /opt/agent -hosts h0,h1,h2 -ppn 1 -genv UCX_TLS tcp,self \
         -genv UCX_NET_DEVICES e0 -genv FI_PROVIDER tcp -genv FI_TCP_IFACE e0 \
         -genv MPIR_CVAR_CH4_PROGRESS_THROTTLE 1 \
         -genv MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT 16 -n 3 \
         -genv LD_PRELOAD /lib/polycast.so --tag-output ./a.out 7"
    );
    let before_throttle = line(&mpi(Launcher::Hydra, (4, 0, 2)), &PLAIN, &emulated());
    assert!(!before_throttle.contains("THROTTLE"), "{before_throttle}");
}

/// One rank of a program and two of another.
#[test]
fn each_of_several_programs_has_the_variables() {
    let further = vec![Part { ranks: 2, words: vec!["./b".into(), "1".into()] }];
    let env = vec![("LD_PRELOAD".to_owned(), "/p.so".to_owned())];
    let here = Launch { ranks: Some(1), further: further.clone(), env, ..Launch::default() };
    for (launcher, expected) in [
        (
            Launcher::Orte,
            "--gmca mpi_yield_when_idle 1 --oversubscribe --bind-to none -n 1 -x LD_PRELOAD=/p.so ./a.out 7 : \
             -n 2 -x LD_PRELOAD=/p.so ./b 1",
        ),
        (
            Launcher::Prrte,
            "--gmca mpi_yield_when_idle 1 --map-by slot:oversubscribe --bind-to none -n 1 -x LD_PRELOAD=/p.so \
             ./a.out 7 : -n 2 -x LD_PRELOAD=/p.so ./b 1",
        ),
        (Launcher::IntelHydra, "-n 1 -genv LD_PRELOAD /p.so ./a.out 7 : -n 2 ./b 1"),
    ] {
        assert_eq!(line(&mpi(launcher, (5, 0, 0)), &PLAIN, &here), expected);
    }
    let on_hosts = Launch { ranks: Some(1), further, ..emulated() };
    let of_orte = line(&mpi(Launcher::Orte, (4, 1, 4)), &PLAIN, &on_hosts);
    assert!(!of_orte.contains("--mca") && of_orte.contains("--gmca plm_rsh_agent /opt/agent"), "{of_orte}");
    assert_eq!(of_orte.matches("--host h0:1,h1:1,h2:1").count(), 2, "{of_orte}");
}

#[test]
fn intel_mpi_across_emulated_hosts() {
    let line = line(&mpi(Launcher::IntelHydra, (2021, 19, 0)), &PLAIN, &emulated());
    assert!(line.contains("-genv I_MPI_FABRICS ofi -genv FI_PROVIDER tcp -genv FI_TCP_IFACE e0"), "{line}");
}

#[test]
fn without_hosts_the_job_runs_here_over_whatever_is_best() {
    let launch = Launch { ranks: Some(2), ..Launch::default() };
    for (launcher, expected) in [
        (Launcher::Orte, "--oversubscribe -n 2 ./a.out 7"),
        (Launcher::Prrte, "--map-by slot:oversubscribe -n 2 ./a.out 7"),
        (Launcher::Hydra, "-n 2 ./a.out 7"),
        (Launcher::IntelHydra, "-n 2 ./a.out 7"),
    ] {
        assert_eq!(line(&mpi(launcher, (5, 0, 0)), &PLAIN, &launch), expected);
    }
}

#[test]
fn in_an_allocation_the_launcher_knows_how_many() {
    let surroundings = Surroundings { allocation: Some(Allocation::default()), ..PLAIN };
    for (launcher, expected) in [
        (Launcher::Orte, "./a.out 7"),
        (Launcher::Prrte, "--map-by slot ./a.out 7"),
        (Launcher::Hydra, "./a.out 7"),
        (Launcher::IntelHydra, "./a.out 7"),
    ] {
        assert_eq!(line(&mpi(launcher, (5, 0, 0)), &surroundings, &Launch::default()), expected);
    }
}

#[test]
fn open_mpi_is_told_what_stands_in_the_node_file_of_pbs() {
    let hosts = vec![("n1".to_owned(), 2), ("n0".to_owned(), 1)];
    let allocation = Some(Allocation { places: Some(3), hosts });
    let surroundings = Surroundings { allocation, ..PLAIN };
    for (launcher, ranks, expected) in [
        (Launcher::Orte, None, "--host n1:2,n0:1 ./a.out 7"),
        (Launcher::Orte, Some(2), "--host n1:2,n0:1 -n 2 ./a.out 7"),
        (Launcher::Hydra, None, "./a.out 7"),
    ] {
        let launch = Launch { ranks, ..Launch::default() };
        assert_eq!(line(&mpi(launcher, (4, 1, 4)), &surroundings, &launch), expected);
    }
}

#[test]
fn uneven_hosts_keep_their_ranks() {
    for (launcher, expected) in [
        (Launcher::Orte, "--host a:1,b:2 -n 3 ./a.out 7"),
        (Launcher::Prrte, "--host a:1,b:2 --map-by slot -n 3 ./a.out 7"),
        (Launcher::Hydra, "-hosts a:1,b:2 -n 3 ./a.out 7"),
    ] {
        assert_eq!(line(&mpi(launcher, (5, 0, 0)), &PLAIN, &uneven()), expected);
    }
}

#[test]
fn ranks_that_outnumber_cores_are_told_to_yield() {
    let here = |ranks| Launch { ranks: Some(ranks), ..Launch::default() };
    let yields = |surroundings: &Surroundings, launch: &Launch| {
        line(&mpi(Launcher::Orte, (4, 1, 4)), surroundings, launch).contains("mpi_yield_when_idle 1")
    };
    assert!(!yields(&PLAIN, &here(2)));
    assert!(yields(&PLAIN, &here(3)));
    assert!(yields(&Surroundings { cores: 1, ..PLAIN }, &uneven()));
    assert!(!yields(&Surroundings { allocation: Some(Allocation::default()), ..PLAIN }, &here(64)));
}

#[test]
fn root_may_start_open_mpi() {
    let allowed = |launcher| {
        let command = mpi(launcher, (5, 0, 0)).command_in(
            &Surroundings { is_root: true, ..PLAIN },
            &Launch::default(),
            &[],
        );
        command.get_envs().map(|(name, _)| name.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(allowed(Launcher::Orte), ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"]);
    assert!(allowed(Launcher::Hydra).is_empty());
}
