import {
  flags,
  type Grammar,
  type Grammars,
  oneOf,
  paths,
  plain,
  sameGrammar,
  spellOptions,
  verbs,
} from '../grammar.ts'

const hadoop = 'hdfs, yarn, hadoop: Apache Hadoop 3.3 commands guide'
const pacemaker = 'Pacemaker 2.1'
const none: Grammar['operands'] = {}

/** What a file system of Hadoop tells of its paths: names and sizes, never what is in them, one directory at a time: -R,
 * -du and -count go through all that is below. -D and -conf are settings, -fs goes elsewhere. */
const files: Grammar = {
  manual: hadoop,
  style: 'word',
  options: spellOptions({ flag: '-ls -df -stat -h -d -C -t -S -r -u -q -v -x -help' }),
  operands: { rest: 'text' },
  requires: ['-ls', '-df', '-stat', '-help'],
  refusesOperands: ['^[a-z0-9+.-]+://', '^[^/%][^/]*:'],
}

/** Programs that one service brings along: each in the forms that only look. */
export const serviceTools: Grammars = {
  ...sameGrammar('hdfs', {
    // fsck goes through all that the name node has.
    manual: hadoop,
    commands: {
      dfs: files,
      dfsadmin: {
        // -safemode get alone tells; enter and leave act, and so does every other word.
        manual: hadoop,
        style: 'word',
        options: spellOptions({ flag: '-report -live -dead -decommissioning -printTopology -safemode' }),
        operands: { rest: 'text' },
        refusesOperands: ['^(?!get$)'],
        requires: ['-report', '-printTopology', '-safemode'],
        only: [{ value: '', first: '^get$' }],
      },
      haadmin: {
        manual: hadoop,
        style: 'word',
        options: spellOptions({ flag: '-getAllServiceState -getServiceState -checkHealth', text: '-ns' }),
        operands: { first: ['name'] },
        requires: ['-getAllServiceState', '-getServiceState', '-checkHealth'],
      },
      // -confKey prints a value, which may be a password.
      getconf: {
        ...oneOf(hadoop, '-namenodes -secondaryNameNodes -backupNodes -journalNodes -nnRpcAddresses'),
        style: 'word',
      },
      version: { manual: hadoop },
    },
  }),
  hadoop: { manual: hadoop, commands: { fs: files, version: { manual: hadoop } } },
  yarn: {
    // kill and move are options of the same commands.
    manual: hadoop,
    commands: {
      ...sameGrammar('node application app queue applicationattempt container', {
        manual: hadoop,
        style: 'word',
        options: spellOptions({
          flag: '-list -all -showDetails',
          name: '-status',
          text: '-states -appStates -appTypes',
        }),
        operands: { first: ['name'] },
        requires: ['-list', '-status'],
      }),
      rmadmin: {
        manual: hadoop,
        style: 'word',
        options: spellOptions({ flag: '-getAllServiceState', name: '-getServiceState' }),
        requires: ['-getAllServiceState', '-getServiceState'],
      },
      version: { manual: hadoop },
    },
  },
  'zkServer.sh': verbs('zkServer.sh, Apache ZooKeeper 3.8', 'status|version'),
  ...sameGrammar('zookeeper-shell zookeeper-shell.sh', {
    // Without a command it is a session, and `get` prints what a node holds.
    manual: 'zookeeper-shell, Apache Kafka 3.6',
    style: 'plain',
    operands: { first: ['host', 'text', 'text'], min: 3 },
    second: '^(ls|stat)$',
    refusesOperands: ['^-'],
  }),
  'gitlab-ctl': {
    // The first three of Omnibus, and what its databases tell; tail never ends, show-config prints every password.
    manual: 'gitlab-ctl, Omnibus GitLab 16: maintenance commands',
    commands: {
      status: { manual: 'gitlab-ctl status', operands: { rest: 'name' } },
      'service-list': { manual: 'gitlab-ctl service-list' },
      ...paths('patroni members, repmgr cluster show, get-postgresql-primary, pgb-console-status, consul members', {
        manual: 'gitlab-ctl, Omnibus GitLab 16',
      }),
    },
  },
  'gitlab-patronictl': {
    // patronictl with the settings of the package, which root writes.
    manual: 'gitlab-patronictl, Omnibus GitLab 16; patronictl, Patroni 3.2',
    commands: {
      ...sameGrammar('list topology history', {
        options: spellOptions({ flag: '-e -t --extended --timestamp', name: '-f --format --group' }),
        operands: { rest: 'name' },
      }),
      version: { operands: { rest: 'name' } },
    },
  },
  stratis: {
    manual: 'stratis(8), stratis-cli 3.5',
    options: spellOptions({ flag: '--unhyphenated-uuids --version' }),
    bare: true,
    commands: {
      ...paths('pool|filesystem|fs|blockdev list, daemon version', {
        manual: 'stratis(8), stratis-cli 3.5',
        options: spellOptions({ flag: '--stopped', name: '--name --uuid' }),
        operands: { first: ['name'] },
      }),
    },
  },
  nstat: {
    // Without -s it writes its history.
    manual: 'nstat(8), iproute2 6.1',
    options: spellOptions({ flag: '-a -z -s -j -p --ignore --zeros --noupdate --json --pretty' }),
    operands: { rest: 'text' },
    requires: ['-s', '--noupdate'],
    adds: ['-s'],
    refusesOperands: ['^(?![\\w*?]+$)'],
  },
  net: {
    // Cumulus' own; Samba's program of this name knows no `show`. The configuration as a whole holds passwords of neighbours.
    manual: 'net(5), NCLU of Cumulus Linux 4.4',
    commands: {
      show: {
        manual: 'net show, NCLU',
        commands: sameGrammar(
          'bgp bridge clag counters evpn interface lldp lacp mroute ospf pim route route-map rollback system time version vrf vrr bfd dot1x ip ipv6 neighbor',
          { operands: { rest: 'text' }, refusesOperands: ['^(?![\\w./:-]+$)', 'config', 'password', 'commands'] },
        ),
      },
    },
  },
  crm_simulate: {
    // -S works on a copy of the state, and -G, -D, -O and kin write files.
    ...oneOf(
      `crm_simulate(8), ${pacemaker}`,
      '-L --live-check',
      '-s -a -V -U --show-scores --all-actions --show-utilization',
    ),
  },
  crm_resource: {
    // What is not among these moves, bans, cleans or sets; -Q and -q print parameters, passwords among them.
    manual: `crm_resource(8), ${pacemaker}`,
    options: spellOptions({
      flag: '-l -L -O -W -a -A --list-raw --list --list-operations --list-all-operations --locate --constraints --stack --why -Y -V',
      name: '-r --resource -N --node --output-as',
    }),
    requires: [
      '-l',
      '-L',
      '-O',
      '-W',
      '-a',
      '-A',
      '--list-raw',
      '--list',
      '--list-operations',
      '--locate',
      '--constraints',
      '--why',
    ],
  },
  stonith_admin: {
    manual: `stonith_admin(8), ${pacemaker}`,
    options: spellOptions({ flag: '-L -I --list-registered --list-installed -V', name: '-l -H --list --history' }),
    requires: ['-L', '-I', '-l', '-H', '--list-registered', '--list-installed', '--list', '--history'],
  },
  // A second word sets off what the first one names.
  sv: {
    manual: 'sv(8), runit 2.1',
    commands: sameGrammar('status s', { operands: { rest: 'text', min: 1 }, refusesOperands: ['^-'] }),
  },
  ipsec: verbs(
    'ipsec(8), strongSwan 5.9, Libreswan 4',
    'status|statusall|trafficstatus|version|listcerts|listpubkeys|leases',
  ),
  asterisk: {
    // -x is a command for the daemon: those of a list. Names of peers are shown, and no line that has their passwords.
    manual: 'asterisk(8), Asterisk 20: CLI commands',
    options: spellOptions({ text: '-x -rx', flag: '-r -n -V' }),
    requires: ['-rx', '-x', '-V'],
    style: 'word',
    refuses: [
      '^(?!(core show (channels|uptime|version|calls|threads|taskprocessors|hints)( (verbose|concise|seconds|count))?|sip show (peers|registry|channels)|pjsip show (endpoints|contacts|registrations|channels|aors)|iax2 show (peers|registry|channels)|queue show( [\\w-]+)?|database show status|module show( like [\\w.]+)?|dialplan show hints|rtp show settings)$)',
    ],
  },
  arping: {
    // -U and -A tell the neighbours another address.
    manual: 'arping(8), iputils 20221126',
    options: spellOptions({ flag: '-b -D -f -q -0', name: '-I', count: '-c', wait: '-w' }),
    operands: { first: ['host'], min: 1 },
    requires: ['-c', '-w'],
  },
  'needs-restarting': {
    manual: 'needs-restarting(1), dnf-plugins-core 4',
    options: spellOptions({ flag: '-r -s --reboothint --services' }),
  },
  faillock: { manual: 'faillock(8), Linux-PAM 1.5', options: spellOptions({ name: '--user' }) },
  lpstat: flags('lpstat(1), CUPS 2.4', '-a -c -d -H -l -o -p -r -R -s -t -v', '', none),
  'systemd-mount': { ...oneOf('systemd-mount(1), systemd 252', '--list', '--no-pager --no-legend --full -l') },
  'systemd-id128': verbs('systemd-id128(1), systemd 252', 'machine-id|boot-id|invocation-id'),
  'systemd-path': plain('systemd-path(1), systemd 252', {}, { operands: { rest: 'name' } }),
  'systemd-resolve': { ...oneOf('systemd-resolve(1), systemd 238', '--status --statistics', '--no-pager -4 -6') },
  'systemd-escape': plain(
    'systemd-escape(1), systemd 252',
    spellOptions({ flag: '-u -m -p --unescape --mangle --path', text: '--suffix --template' }),
  ),
  sadf: {
    manual: 'sadf(1), sysstat 12.6',
    options: spellOptions({ flag: '-d -j -p -r -x -t -U -H -T -C', text: '-s -e' }),
    operands: { rest: 'file' },
  },
  exiqgrep: flags('exiqgrep(8), Exim 4.96', '-c -b -i -l -R -x -z', '-f -r -s -y -o', none),
  chage: { ...oneOf('chage(1), shadow 4.13', '-l --list', '-i --iso8601'), operands: { first: ['name'] } },
  faillog: flags('faillog(8), shadow 4.13', '-a --all', '-u --user'),
  ntpdate: { ...oneOf('ntpdate(8), ntp 4.2', '-q', '-d -u -v -4 -6'), operands: { rest: 'host', min: 1 } },
  ...sameGrammar('kafka-reassign-partitions kafka-reassign-partitions.sh', {
    manual: 'kafka-reassign-partitions, Apache Kafka 3.6',
    style: 'word',
    options: spellOptions({ flag: '--list', host: '--bootstrap-server' }),
    requires: ['--list'],
  }),
  'zkCli.sh': {
    // Without a command it is a session, and `get` prints what a node holds.
    manual: 'zkCli.sh, Apache ZooKeeper 3.8',
    style: 'word',
    options: spellOptions({ host: '-server', number: '-timeout', flag: '-R -s' }),
    commands: sameGrammar('ls stat', { operands: { first: ['text'], min: 1 } }),
  },
  fi_info: flags('fi_info(1), libfabric 1.17', '-l -e -g -v', '-p -d -f -t -c -n', none),
}
