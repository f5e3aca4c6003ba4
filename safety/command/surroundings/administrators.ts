import type { PlaceRule, ProgramSurroundings } from '../surroundings.ts'

type Row = [names: string, manual: string, files: string, obeys: string]

/**
 * Makes a row for each program of a line, with the files of user and working directory that the
 * program obeys. Each file must be absent, or writable for root alone.
 */
const rowsOf = (
  reach: ProgramSurroundings['reach'],
  rows: readonly Row[],
  more: readonly PlaceRule[] = [],
): [string, ProgramSurroundings][] =>
  rows.flatMap(([names, manual, files, obeys]) =>
    names
      .split(' ')
      .map((name): [string, ProgramSurroundings] => [
        name,
        { manual, reach, obeys, conditions: [...more, { kind: 'root_only', files: files.split(' ') }] },
      ]),
  )
const plain = (
  reach: ProgramSurroundings['reach'],
  rows: readonly [names: string, manual: string][],
): [string, ProgramSurroundings][] =>
  rows.flatMap(([names, manual]) =>
    names.split(' ').map((name): [string, ProgramSurroundings] => [name, { manual, reach }]),
  )

const kubernetes = '~/.kube/config: programs for credentials, files of tokens, proxies'

/** Control programs and clients of platforms. */
export const administrators: [string, ProgramSurroundings][] = [
  ...rowsOf('network', [
    [
      'nodetool',
      'nodetool, Apache Cassandra 4.1: cassandra.in.sh',
      '~/.cassandra.in.sh ~/.cassandra',
      'a shell script of the user that it reads first',
    ],
    [
      'cqlsh',
      'cqlsh, Apache Cassandra 4.1: cqlshrc',
      '~/.cassandra ~/.cqlshrc',
      '~/.cassandra/cqlshrc: another host, modules of Python for credentials',
    ],
    [
      'clickhouse-client clickhouse',
      'clickhouse-client, ClickHouse 23.8: Configuration Files',
      'clickhouse-client.xml clickhouse-client.yaml clickhouse-client.yml ~/.clickhouse-client ~/.config/clickhouse',
      'settings of the directory and the user: another host, and queries that it begins with',
    ],
    [
      'hdfs hadoop yarn',
      'Apache Hadoop 3.3: hadooprc',
      '~/.hadooprc',
      'a shell script of the user that it reads first',
    ],
    ['mongo', 'mongo shell 5.0: .mongorc.js', '~/.mongorc.js', '~/.mongorc.js: code'],
    ['barman', 'barman(1), 3.5: configuration', '~/.barman.conf', 'another configuration, with commands of ssh'],
    [
      'kcat kafkacat',
      'kcat(1), 1.7: configuration',
      '~/.config/kcat.conf ~/.config/kafkacat.conf',
      'settings: another host, libraries',
    ],
    ['nats', 'natscli 0.1: contexts', '~/.config/nats', 'contexts: another host, programs for credentials'],
    ['rpk', 'rpk, Redpanda 23.3: rpk.yaml', '~/.config/rpk redpanda.yaml', 'profiles: another host'],
    ['rabbitmqadmin', 'rabbitmqadmin, RabbitMQ 3.12', '~/.rabbitmqadmin.conf', 'another host'],
    ['vault', 'vault(1), 1.15: token helpers', '~/.vault', '~/.vault: a program that keeps tokens'],
    [
      'openstack',
      'python-openstackclient 6: clouds.yaml',
      'clouds.yaml clouds.yml secure.yaml ~/.config/openstack',
      'clouds.yaml of the directory and the user: another host',
    ],
    ['hcloud', 'hcloud, 1.42: cli.toml', '~/.config/hcloud', 'contexts: another address'],
    ['doctl', 'doctl, 1.104: config.yaml', '~/.config/doctl', 'contexts: another address'],
    ['argocd', 'argocd, 2.9', '~/.config/argocd ~/.argocd', 'contexts: another host'],
    ['linode-cli', 'linode-cli, 5.45', '~/.config/linode-cli ~/.linode-cli', 'another address, plug-ins'],
    ['fly flyctl', 'flyctl, 0.1', '~/.fly fly.toml', 'another address, agents'],
    ['eksctl', 'eksctl, 0.165', '~/.aws', 'what aws obeys'],
    ['talosctl', 'talosctl, 1.6', '~/.talos', 'contexts: other hosts'],
    ['temporal', 'temporal, CLI 0.11: environments', '~/.config/temporalio', 'environments: another host'],
    ['amtool', 'amtool, 0.26: configuration', '~/.config/amtool', 'another host'],
    ['calicoctl', 'calicoctl, 3.26: configuration', '~/.kube/config ~/.calico', kubernetes],
    ['kubeadm', 'kubeadm, 1.29', '~/.kube/config', kubernetes],
    [
      'nerdctl',
      'nerdctl, 1.7: nerdctl.toml',
      '~/.config/nerdctl ~/.config/containers ~/.docker',
      'another address, helper programs',
    ],
    [
      'radosgw-admin cephadm',
      'radosgw-admin(8), cephadm(8)',
      'ceph.conf ~/.ceph',
      'ceph.conf of the directory and the user',
    ],
  ]),
  ...rowsOf(
    'network',
    [
      [
        'tkn stern velero flux istioctl linkerd cilium cilium-dbg hubble cmctl',
        `the manual of each: what kubectl obeys`,
        '~/.config/velero ~/.config/stern ~/.config/cilium ~/.config/hubble ~/.istioctl',
        kubernetes,
      ],
    ],
    [{ kind: 'kubeconfig' }],
  ),
  ...rowsOf(
    'network',
    [
      [
        'gh',
        'gh, GitHub CLI 2.40: config, aliases, extensions',
        '~/.config/gh ~/.local/share/gh',
        'aliases, another host, a browser and a pager; what git obeys',
      ],
      ['glab', 'glab, 1.36: configuration', '~/.config/glab-cli', 'aliases, another host; what git obeys'],
    ],
    [{ kind: 'git_settings' }],
  ),
  ...rowsOf('network', [
    [
      'valkey-cli keydb-cli',
      'valkey-cli, Valkey 7.2: VALKEYCLI_RCFILE',
      '~/.valkeyclirc ~/.redisclirc',
      'settings of a session',
    ],
  ]),
  ...plain('network', [
    ['mongostat mongotop', 'MongoDB Database Tools 100.9'],
    [
      'kafka-transactions kafka-transactions.sh kafka-features kafka-features.sh kafka-cluster kafka-cluster.sh kafka-configs kafka-configs.sh kafka-broker-api-versions kafka-broker-api-versions.sh kafka-log-dirs kafka-log-dirs.sh kafka-get-offsets kafka-get-offsets.sh kafka-acls kafka-acls.sh kafka-metadata-quorum kafka-metadata-quorum.sh pulsar-admin',
      'Apache Kafka 3.6, Apache Pulsar 3.1: KAFKA_OPTS and JAVA_TOOL_OPTIONS are variables',
    ],
    ['rabbitmq-queues rabbitmq-plugins', 'rabbitmq-queues(8), RabbitMQ 3.12: started with no_dot_erlang'],
    ['memcstat unbound-control rndc pdns_control knotc', 'the manual of each: their settings are in /etc'],
    [
      'brctl ebtables iblinkinfo ibnetdiscover ibhosts ibswitches ibnodes ibrouters ibqueryerrors perfquery smpquery ofed_info show_gids ibdev2netdev ibv_devices ibstat ibstatus ibv_devinfo ipvsadm rdma teamdctl wg rpcinfo',
      'the manual of each',
    ],
    ['sacctmgr sreport sinfo squeue sprio sshare sdiag sacct scontrol', 'Slurm 22.05: SLURM_CONF is a variable'],
    ['pgbackrest', 'pgbackrest(1), 2.48: its settings are in /etc or variables'],
    ['tailscale', 'tailscale(8), 1.56'],
    ['ntpdate', 'ntpdate(8), ntp 4.2'],
    [
      'kafka-reassign-partitions kafka-reassign-partitions.sh zkCli.sh',
      'Apache Kafka 3.6, Apache ZooKeeper 3.8: KAFKA_OPTS and CLIENT_JVMFLAGS are variables',
    ],
    ['nstat', 'nstat(8), iproute2 6.1: NSTAT_HISTORY is a variable'],
    ['net arping gitlab-patronictl fi_info', 'the manual of each: their settings are in /etc'],
    [
      'zookeeper-shell zookeeper-shell.sh',
      'zookeeper-shell, Apache Kafka 3.6: KAFKA_OPTS and JAVA_TOOL_OPTIONS are variables',
    ],
    [
      'sstat seff qstat pbsnodes qhost bjobs bhosts bqueues lsload lsid',
      'the manual of each: their settings are in /etc or variables',
    ],
    ['zkServer.sh', 'zkServer.sh, Apache ZooKeeper 3.8: its environment is beside its settings'],
    ['nfsiostat', 'nfsiostat(8), nfs-utils 2.6'],
  ]),
  ...plain('service', [
    ['birdc birdcl birdc6 birdcl6 gobgp lldpcli lldpctl cilium-health', 'the manual of each'],
    ['vtysh', 'vtysh(1), FRRouting 8.4: VTYSH_PAGER is a variable'],
    ['varnishadm', 'varnishadm(1), Varnish 7.1'],
    [
      'ovs-vsctl ovs-ofctl ovs-appctl ovs-dpctl ovn-nbctl ovn-sbctl',
      'Open vSwitch 3.1, OVN 23.03: OVN_NB_DB and OVN_SB_DB are variables',
    ],
    ['socat', 'socat(1), 1.7'],
    [
      'gluster pcs crm crm_mon crm_verify crm_node crm_attribute corosync-cfgtool corosync-quorumtool corosync-cmapctl',
      'the manual of each: their settings are in /etc',
    ],
    ['multipathd doveadm exim exim4 qshape', 'the manual of each: their settings are in /etc'],
    ['pvesr pveceph pvenode proxmox-backup-manager', 'the manual of each, Proxmox VE 8'],
    ['rc-service service swanctl virt-top xl pdnsutil', 'the manual of each'],
    ['cscli', 'cscli, CrowdSec 1.5: its settings are in /etc'],
    [
      'mmgetstate mmlscluster mmlsfs mmlsdisk mmlsmount mmlsnsd mmlspool mmlsfileset mmdf mmhealth lfs lctl lnetctl esxcli nv',
      'the manual of each',
    ],
    [
      'exiqgrep gitlab-ctl stratis crm_simulate crm_resource stonith_admin sv ipsec asterisk lpstat systemd-mount systemd-resolve',
      'the manual of each: their settings are in /etc',
    ],
  ]),
  ...plain('prints', [
    ['bpftool cpupower edac-util ras-mc-ctl', 'the manual of each'],
    [
      'arcstat filefrag xfs_bmap dmsetup e2fsck xfs_repair lsscsi lvmdiskscan parted pvscan lvscan vgscan arc_summary fdisk sfdisk sgdisk blockdev repquota',
      'the manual of each: their settings are in /etc',
    ],
    ['qemu-img', 'qemu-img(1), QEMU 7.2'],
    [
      'storcli storcli64 perccli perccli64 ssacli hpssacli hpacucli arcconf sas2ircu sas3ircu omreport racadm',
      'the manual of each',
    ],
    ['tuned-adm aureport', 'the manual of each'],
    ['varnishstat mysqldumpslow', 'the manual of each: their settings are in /etc'],
    ['postmap celery', 'the manual of each: only the version is printed'],
    [
      'keepalived iperf3 fio scylla crash drgn rbspy fluent-bit vector telegraf envoy zookeeper dnsmasq proxysql mysqlrouter innochecksum goaccess firecracker zabbix_agentd pgbouncer pgbadger pg_activity multitail popeye helmfile drone act concourse buildkite-agent consul-template nsqadmin newrelic-infra dive kexec k9s dlv influxd varnishd kustomize boundary packer waypoint traefik caddy',
      'the manual of each: only the version is printed',
    ],
    [
      'amd-smi apk bootc cloud-init dcgmi dkms efibootmgr fwupdmgr grubby hwclock klist ldconfig linstor megacli MegaCli MegaCli64 mokutil nm pacman readelf rocm-smi rocminfo smem update-alternatives debsums rc-status',
      'the manual of each: their settings are in /etc',
    ],
    ['promtool', 'promtool, Prometheus 2.48'],
    ['chage faillog faillock systemd-id128 systemd-path systemd-escape sadf', 'the manual of each'],
  ]),
]
