import { settingsDirectory } from '../settings-directory.ts'
import type { ProgramSurroundings } from '../surroundings.ts'

type Row = [names: string, manual: string]
const rowsOf = (reach: ProgramSurroundings['reach'], rows: readonly Row[]): [string, ProgramSurroundings][] =>
  rows.flatMap(([names, manual]) =>
    names.split(' ').map((name): [string, ProgramSurroundings] => [name, { manual, reach }]),
  )

const jdk = 'the manual of each, OpenJDK 17: JAVA_TOOL_OPTIONS is a variable'

/**
 * Programs that obey only the administrator: their words, their input, `/etc` and what is
 * installed. Variables that some of them read (`TAR_OPTIONS`, `GREP_OPTIONS`, `LS_COLORS`,
 * `PS_FORMAT`, `OPENSSL_CONF`, `JAVA_TOOL_OPTIONS`, `LD_PRELOAD`) are not in the environment of a
 * read.
 */
export const plain: [string, ProgramSurroundings][] = [
  ...rowsOf('service', [
    [
      'jcmd jinfo jstack',
      `${jdk}. They attach by a signal that ends a process that is not Java, so the named process is checked just before`,
    ],
  ]).map(([name, row]): [string, ProgramSurroundings] => [name, { ...row, attaches: true }]),
  ...rowsOf('prints', [
    ['cd command type ulimit : true false echo printf test [ pwd', 'bash(1)'],
    [
      'basename dirname df du ls readlink realpath stat cat cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum comm head od ' +
        'tail wc base64 base32 cut expand unexpand expr fmt fold join nl paste seq sort tac tr uniq arch date groups id hostid logname nproc ' +
        'uname users who whoami',
      'GNU coreutils 9.1',
    ],
    ['cmp diff', 'diff(1), diffutils 3.8'],
    ['find', 'find(1), findutils 4.9'],
    ['locate plocate mlocate', 'plocate(1)'],
    ['file', 'file(1), file 5.44: a magic file of the user only says what is printed'],
    ['getfacl getfattr lsattr', 'getfacl(1), getfattr(1), lsattr(1)'],
    [
      'namei last lastlog lscpu lsipc lslocks lslogins lsns lsmem dmesg column hexdump hd rev whereis',
      'util-linux 2.38',
    ],
    ['tree', 'tree(1), tree 2.1'],
    ['strings', 'strings(1), binutils 2.40'],
    ['xxd', 'xxd(1), vim 9.0'],
    ['awk gawk mawk nawk', 'awk(1); gawk(1); mawk(1)'],
    ['jq', 'jq(1), jq 1.6: definitions of the user in ~/.jq only change what is printed'],
    ['sed', 'sed(1), GNU sed 4.9'],
    ['grep egrep fgrep', 'grep(1), GNU grep 3.8'],
    ['zgrep zegrep zfgrep bzgrep xzgrep zstdgrep', 'zgrep(1), gzip 1.12'],
    ['rg', 'rg(1), ripgrep 14.1: its settings are named by a variable alone'],
    ['yq', 'yq 4.44; yq 3.4'],
    ['iconv getconf locale', 'glibc 2.36'],
    [
      'bzip2 bunzip2 unxz unzstd xz zstd gzip gunzip zcat bzcat xzcat zstdcat lz4cat gzcat',
      'gzip(1), bzip2(1), xz(1), zstd(1)',
    ],
    ['tar', 'tar(1), GNU tar 1.34: TAR_OPTIONS and RSH are variables'],
    ['unzip zipinfo', 'unzip(1), zipinfo(1), Info-ZIP 6.0'],
    ['openssl', 'openssl(1), OpenSSL 3.0: engines come from its own configuration or OPENSSL_CONF'],
    ['sleep', 'sleep(1), coreutils 9.1'],
    ['cal', 'cal(1), bsdmainutils 12'],
    ['tty which', 'tty(1), which(1)'],
    ['lsmod modinfo', 'lsmod(8), modinfo(8), kmod 30'],
    [
      'free pgrep pidof pmap ps pwdx slabtop top uptime vmstat w sysctl',
      'procps-ng 4.0: a toprc of the user runs nothing in batch mode',
    ],
    ['fuser pstree', 'fuser(1), pstree(1), psmisc 23.6'],
    ['iostat mpstat pidstat sar', 'sysstat 12.6'],
    ['dmidecode lshw lspci lsusb nvidia-smi numactl numastat sensors', 'the manual of each'],
    ['ipmitool', 'ipmitool(1), 1.8'],
    [
      'blkid btrfs drbdadm drbdsetup dumpe2fs exportfs hdparm losetup lsblk lvs pvs vgs lvdisplay pvdisplay vgdisplay mdadm multipath nvme ' +
        'quota smartctl swapon tune2fs xfs_info zfs zpool iscsiadm',
      'the manual of each: their settings are in /etc',
    ],
    ['apt apt-cache apt-mark dpkg dpkg-query', 'apt(8), dpkg(1): APT_CONFIG is a variable'],
    ['pg_lsclusters pg_controldata', 'pg_lsclusters(1), pg_controldata(1)'],
    [
      'journalctl coredumpctl systemd-detect-virt systemd-cgls systemd-cgtop bootctl',
      'the manual of each, systemd 252',
    ],
    ['aa-status auditctl ausearch getenforce sestatus visudo crontab atq', 'the manual of each'],
    [
      'doveconf postconf sshd logrotate named-checkzone',
      'the manual of each: their settings are in /etc; logrotate -d runs no script',
    ],
    ['pveversion', 'pveversion(1)'],
    [
      'bash gcc g++ make perl php ruby node java javac',
      'the manual of each: only the version is printed; BASH_ENV, NODE_OPTIONS, RUBYOPT and JAVA_TOOL_OPTIONS are variables',
    ],
  ]),
  ...rowsOf('service', [
    [
      'systemctl busctl hostnamectl localectl loginctl machinectl timedatectl systemd-analyze',
      'the manual of each, systemd 252',
    ],
    ['snap flatpak', 'snap(8); flatpak(1)'],
    ['mailq postqueue', 'postqueue(1), Postfix 3.7'],
    ['fail2ban-client firewall-cmd ufw', 'the manual of each'],
    ['pct qm pveam pvecm pvesh pvesm', 'the manual of each, Proxmox VE 8'],
    ['ctr', 'ctr, containerd 1.6'],
    ['ha-manager', 'ha-manager(1), Proxmox VE 8'],
    ['jps jstat', jdk],
    ['eu-stack', 'eu-stack(1), elfutils 0.188: DEBUGINFOD_URLS is a variable'],
    ['minikube kind', 'minikube(1): only the version is printed'],
    ['lxc-info lxc-ls', 'lxc-info(1), LXC 5.0'],
  ]),
  ...rowsOf('network', [
    ['arp ifconfig netstat route', 'net-tools 2.10: they resolve names'],
    ['hostname', 'hostname(1): it resolves names'],
    ['getent', 'getent(1), glibc 2.36: as /etc/nsswitch.conf says'],
    ['bridge ip ss tc nstat', 'iproute2 6.1'],
    ['conntrack ethtool ipset iw iwconfig nft', 'the manual of each'],
    [
      'iptables ip6tables iptables-legacy iptables-nft ip6tables-legacy ip6tables-nft iptables-save ip6tables-save',
      'iptables(8)',
    ],
    ['nmcli networkctl resolvectl', 'nmcli(1); networkctl(1), resolvectl(1), systemd 252'],
    ['lsof', 'lsof(8), lsof 4.95: it resolves names'],
    ['host nslookup', 'host(1), nslookup(1), BIND 9.18'],
    [
      'fping mtr mtr-packet ping ping4 ping6 traceroute traceroute6 tracepath tracepath6',
      'the manual of each; MTR_OPTIONS is a variable',
    ],
    ['nc ncat netcat', 'nc(1)'],
    ['nfsstat showmount', 'nfsstat(8), showmount(8), nfs-utils 2.6'],
    ['chronyc ntpq', 'chronyc(1), ntpq(1)'],
    ['tcpdump', 'tcpdump(8), 4.99'],
    ['iotop', 'iotop(8): it asks the kernel over netlink'],
    ['crictl', 'crictl, cri-tools 1.29: its settings are /etc/crictl.yaml'],
    ['consul nomad', 'consul(1), nomad(1): the address is a variable'],
    ['etcdctl', 'etcdctl(1), etcd 3.5: every option may be a variable'],
    [
      'kafka-topics kafka-topics.sh kafka-consumer-groups kafka-consumer-groups.sh',
      'Apache Kafka 3.6: KAFKA_OPTS and JAVA_TOOL_OPTIONS are variables',
    ],
    [
      'pg_isready',
      'pg_isready(1), PostgreSQL 15: a service is named by a variable or in the connection, which is left out',
    ],
    ['rabbitmqctl rabbitmq-diagnostics', 'rabbitmqctl(8), RabbitMQ 3.12: started with no_dot_erlang'],
  ]),
  ...rowsOf('mounts', [['findmnt mount mountpoint', 'findmnt(8), mount(8), mountpoint(1), util-linux 2.38']]),
]

/** Keys that determine who connects, and how. */
const mysqlKeys =
  'user password port socket protocol connect_timeout default_character_set ssl_mode ssl_ca ssl_cert ssl_key compress database table'.split(
    ' ',
  )

const mysql: ProgramSurroundings = {
  manual: 'mysql(1), MySQL 8.0: option files',
  reach: 'network',
  obeys: '~/.my.cnf, ~/.mylogin.cnf: init-command, pager, tee, plugin-dir, another host',
  conditions: [
    { kind: 'plain_settings', file: '~/.my.cnf', keys: mysqlKeys },
    { kind: 'root_only', files: ['~/.mylogin.cnf'] },
  ],
}

/** Clients of databases and of HTTP. */
export const clients: [string, ProgramSurroundings][] = [
  ...['mysql', 'mariadb', 'mysqladmin', 'mariadb-admin', 'mysqlshow', 'mariadb-show'].map(
    (name): [string, ProgramSurroundings] => [name, mysql],
  ),
  [
    'psql',
    {
      manual: 'psql(1), PostgreSQL 15: PSQLRC, PSQL_PAGER',
      reach: 'network',
      obeys: '~/.psqlrc: backslash commands that run programs',
      switches: { PSQLRC: '/dev/null', PSQL_PAGER: '', PSQL_HISTORY: '/dev/null' },
    },
  ],
  [
    'sqlite3',
    {
      manual: 'sqlite3(1), SQLite 3.40: -init',
      reach: 'prints',
      obeys: '~/.sqliterc: dot commands that run programs, also where the statement is an argument',
      conditions: [{ kind: 'root_only', files: ['~/.sqliterc', '~/.config/sqlite3/sqliterc'] }],
    },
  ],
  [
    'redis-cli',
    {
      manual: 'redis-cli, Redis 7: REDISCLI_RCFILE',
      reach: 'network',
      obeys: '~/.redisclirc: settings of a session',
      switches: { REDISCLI_RCFILE: '/dev/null', REDISCLI_HISTFILE: '/dev/null' },
    },
  ],
  [
    'mongosh',
    {
      manual: 'mongosh: .mongoshrc.js',
      reach: 'network',
      obeys: '~/.mongoshrc.js: code',
      conditions: [{ kind: 'root_only', files: ['~/.mongoshrc.js', '~/.mongorc.js'] }],
      obeysNothingWith: ['--norc'],
    },
  ],
  [
    'patronictl',
    {
      manual: 'patronictl, Patroni 3.2: -c',
      reach: 'network',
      obeys: '~/.config/patroni/patronictl.yaml, -c: where the cluster is and who is asked',
      conditions: [{ kind: 'root_only', files: ['~/.config/patroni/patronictl.yaml'] }],
      obeysFilesOf: ['-c', '--config-file'],
    },
  ],
  [
    'repmgr',
    {
      manual: 'repmgr(1), repmgr 5.4: -f',
      reach: 'network',
      obeys: 'repmgr.conf of the directory, -f: connections, options of ssh',
      conditions: [{ kind: 'root_only', files: ['repmgr.conf'] }],
      obeysFilesOf: ['-f', '--config-file'],
    },
  ],
  [
    'curl',
    {
      manual: 'curl(1), curl 7.88: -K, CURL_HOME',
      reach: 'network',
      obeys: '~/.curlrc: any option, files to write and other hosts among them',
      conditions: [{ kind: 'root_only', files: ['~/.curlrc', '~/.config/curlrc', '~/.config/.curlrc'] }],
      obeysNothingWith: ['-q'],
    },
  ],
  [
    'wget',
    {
      manual: 'wget(1), GNU Wget 1.21: startup file',
      reach: 'network',
      obeys: '~/.wgetrc: any option; ~/.netrc: names and passwords for a host',
      // Replaces the first settings file, and disables the second.
      switches: { WGETRC: `${settingsDirectory}/wgetrc` },
    },
  ],
  [
    'dig',
    {
      manual: 'dig(1), BIND 9.18: .digrc',
      reach: 'network',
      obeys: '~/.digrc: any option, another server and a list of names among them',
      conditions: [{ kind: 'root_only', files: ['~/.digrc'] }],
      obeysNothingWith: ['-r'],
    },
  ],
]

/** Reads settings of clients that connect. Returns why a read must not obey them, or null. */

/**
 * Checks a kubeconfig that was read as YAML. Refuses a program for credentials, a file that is sent
 * as a token, and a proxy. Certificates only connect.
 */
export function oddKubeconfig(config: unknown): string | null {
  if (config === null || config === undefined) return null
  if (typeof config !== 'object') return 'it is no kubeconfig'
  return oddKey(config, new Set(['exec', 'auth-provider', 'tokenfile', 'proxy-url']))
}

function oddKey(value: unknown, odd: ReadonlySet<string>): string | null {
  if (value === null || typeof value !== 'object') return null
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value) && odd.has(key.toLowerCase())) return key
    const found = oddKey(inner, odd)
    if (found !== null) return found
  }
  return null
}

/** Keys of `~/.docker/config.json` that change neither the host nor the programs of a read. */
const dockerKeys = new Set(
  (
    'auths credsStore credHelpers HttpHeaders psFormat imagesFormat networksFormat volumesFormat statsFormat servicesFormat tasksFormat ' +
    'nodesFormat serviceInspectFormat secretFormat configFormat pluginsFormat detachKeys experimental debug'
  ).split(' '),
)

export function oddDockerSettings(settings: unknown): string | null {
  if (settings === null || typeof settings !== 'object' || Array.isArray(settings)) return 'it is no object'
  for (const [key, value] of Object.entries(settings)) {
    if (key === 'currentContext' && (value === '' || value === 'default')) continue
    if (!dockerKeys.has(key)) return key
  }
  return null
}

/**
 * Checks the lines of a file of sections with `key = value`. Accepts only whole keys. A host must
 * be this machine.
 */
export function oddSetting(text: string, keys: readonly string[]): string | null {
  for (const line of text.split(/\r\n|[\r\n]/).map((line) => line.trim())) {
    if (line === '' || /^[#;]/.test(line) || /^\[[\w .:@/-]+\]$/.test(line)) continue
    const [name = '', value = ''] = line.split(/=(.*)/s).map((part) => part.trim())
    const key = name.toLowerCase().replaceAll('-', '_')
    const isHere = key === 'host' && /^["']?(?:localhost|127\.0\.0\.1|::1)["']?$/.test(value)
    if (!keys.includes(key) && !isHere) return name
  }
  return null
}
