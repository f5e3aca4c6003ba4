import { each, flags, type Grammar, type Grammars, oneOf, paths, spell, verbs } from '../grammar.ts'

/** Partitions, file systems, controllers of disks and what else of a machine has a small program for itself. */
export const disks: Grammars = {
  cpupower: verbs('cpupower(1), Linux 6.1', 'frequency-info|idle-info|info', spell({ text: '-c --cpu' })),
  'edac-util': flags('edac-util(1), 0.18', '-v -s -q -r --verbose --status'),
  'ras-mc-ctl': oneOf('ras-mc-ctl(8), rasdaemon 0.6', '--status --summary --errors --error-count --layout --mainboard'),
  'tuned-adm': verbs('tuned-adm(8), 2.20', 'active|list|profile_info|recommend'),
  aureport: {
    manual: 'aureport(8), audit 3.0',
    style: 'word',
    options: spell({
      flag: '--summary --failed --success -a -au -f -i -l -m -p -s -x --auth --avc --login',
      text: '-ts -te --start --end',
    }),
  },
  lsscsi: flags('lsscsi(8), 0.32', '-c -d -g -i -k -l -L -p -P -s -S -t -U -u -v -w -V'),
  parted: {
    // Every command that follows acts at once.
    manual: 'parted(8), GNU Parted 3.5',
    options: spell({ flag: '-l -s -m --list --script --machine' }),
    requires: ['-l', '--list'],
  },
  fdisk: oneOf('fdisk(8), util-linux 2.38', '-l --list', '-x --bytes', '-o --output', { rest: 'text' }),
  sfdisk: oneOf('sfdisk(8), util-linux 2.38', '-l -d -J --list --dump --json', '', '', { rest: 'text' }),
  sgdisk: { ...oneOf('sgdisk(8), 1.0', '-p --print', '', '-i', { first: ['text'], min: 1 }), style: 'word' },
  blockdev: {
    ...oneOf(
      'blockdev(8)',
      '--getsize64 --getsz --getss --getbsz --getpbsz --getro --getra --getalignoff --report',
      '',
      '',
      { rest: 'text' },
    ),
  },
  lvmdiskscan: flags('lvmdiskscan(8), lvm2 2.03', '-l'),
  ...each('e2fsck xfs_repair', {
    ...oneOf('e2fsck(8), e2fsprogs 1.47; xfs_repair(8), xfsprogs 6.1', '-n', '', '', { first: ['text'], min: 1 }),
    style: 'word',
  }),
  filefrag: {
    ...flags('filefrag(8), e2fsprogs 1.47', '-v -e -b -k -x'),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  xfs_bmap: {
    ...flags('xfs_bmap(8), xfsprogs 6.1', '-a -l -p -v -vv'),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  'qemu-img': {
    // A name may be an address of a block driver, or json: with any of them.
    manual: 'qemu-img(1), QEMU 7.2',
    commands: {
      ...each('info check', {
        manual: 'qemu-img(1)',
        options: spell({ flag: '-U --force-share --backing-chain', name: '-f --output' }),
        operands: { first: ['text'], min: 1 },
        refusesOperands: [':'],
      }),
    },
  },
  arcstat: {
    manual: 'arcstat(1), OpenZFS 2.1',
    options: spell({ flag: '-a -p -v -x', text: '-f -s' }),
    operands: { first: ['number', 'number'] },
    endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
  },
  nfsiostat: {
    manual: 'nfsiostat(8), nfs-utils 2.6',
    options: spell({ flag: '-a -d -p -s' }),
    operands: { rest: 'text' },
    endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
  },
  rpcinfo: {
    manual: 'rpcinfo(8), rpcbind 1.2',
    options: spell({ flag: '-p -s -m' }),
    operands: { first: ['host'] },
    requires: ['-p', '-s', '-m'],
  },
  repquota: flags('repquota(8), quota 4.06', '-a -g -i -n -p -s -t -u -v', '', { rest: 'text' }),
  ...each('pvesr', verbs('pvesr(1), Proxmox VE 8', 'list|status')),
  pveceph: verbs('pveceph(1), Proxmox VE 8', 'status, pool ls, osd details'),
  pvenode: verbs(
    'pvenode(1), Proxmox VE 8',
    'task list|status, cert info',
    spell({ text: '--errors --limit --typefilter --since --until --vmid --output-format' }),
  ),
  'proxmox-backup-manager': verbs(
    'proxmox-backup-manager(1), 3.1',
    'datastore|task|verify-job|sync-job list, garbage-collection status, versions, disk list',
    spell({ text: '--output-format --limit' }),
  ),
  ...each('storcli storcli64 perccli perccli64', {
    // Words act; `file=` and `logfile=` write.
    manual: 'StorCLI 7.1 reference',
    style: 'plain',
    operands: { first: ['text', 'text', 'text'], min: 1 },
    refuses: ['^(?!(/c(\\d|all)(/(v|e|s|f|d|bbu|cv|p)(\\d+|all)?)*|show|all|J|status)$)'],
  }),
  ...each('ssacli hpssacli', {
    manual: 'ssacli, HPE Smart Storage Administrator',
    style: 'plain',
    operands: { rest: 'text', min: 1 },
    refuses: [
      '^(?!(ctrl|controller|all|slot=\\d+|show|config|status|detail|pd|ld|array|physicaldrive|logicaldrive|[A-Z]|\\d+[A-Z]?(:\\d+){0,3})$)',
    ],
  }),
}

const manual = 'ceph(8), rbd(8), rados(8), Ceph 18'
const look = (operands?: Grammar['operands']): Grammar => ({ manual, ...(operands ? { operands } : {}) })
const group = (commands: Grammar['commands'], bare?: true): Grammar => ({ manual, ...(bare ? { bare } : {}), commands })
const all = { rest: 'text' } as const
const one = { first: ['name'], min: 1 } as const
/** A daemon, and what it is asked: each word by itself is a daemon's name or a question. */
const asked = (questions: string): Grammar => ({
  manual,
  operands: { rest: 'name', min: 2 },
  refusesOperands: [`^(?!((osd|mon|mds|mgr|client)\\.[\\w-]+|${questions.trim().split(/\s+/).join('|')})$)`],
})
const questions = `status version perf dump schema ops dump_ops_in_flight dump_blocked_ops dump_historic_ops dump_historic_slow_ops
  dump_mempools mon_status quorum_status dump_scrubs get_latest_osdmap dump_pgstate_history session ls`
/** One setting that holds no password; as a whole they hold some. */
const setting: Grammar = {
  manual,
  operands: { first: ['name', 'name'], min: 2 },
  refuses: ['pass', 'key', 'secret', 'token', 'auth'],
}

/** auth, config, config-key and radosgw-admin print keys: left out, with every verb that changes. */
export const ceph: Grammars = {
  ceph: {
    manual,
    options: spell({
      name: '-f --format --cluster',
      number: '--connect-timeout',
      flag: '-v --version --concise --verbose',
    }),
    // -s is short for status; -w goes on for ever.
    keywords: ['-s', '--status'],
    commands: {
      ...each('-s --status status versions features quorum_status mon_status time-sync-status', look()),
      ...each('health df', look({ first: ['name'] })),
      osd: group({
        // `osd perf query add` begins to measure, `osd perf` tells.
        ...each('stat status perf utilization blocked-by', look()),
        ...each('ls dump tree df', look(all)),
        ...each('find metadata ok-to-stop safe-to-destroy', look({ rest: 'name', min: 1 })),
        'numa-status': look(),
        pool: group({
          ...each('ls stats autoscale-status', look(all)),
          get: look({ first: ['name', 'name'], min: 2 }),
        }),
        crush: group({ tree: look(all), rule: group(each('ls dump', look(all))) }),
        'erasure-code-profile': group({ ls: look(), ...each('get', look(one)) }),
      }),
      mon: group(each('stat dump metadata', look(all))),
      mgr: group({ ...each('stat services dump', look()), module: group(each('ls', look())) }),
      mds: group(each('stat metadata', look(all))),
      fs: group(each('ls status dump get', look(all))),
      pg: group({ ...each('stat dump dump_stuck ls ls-by-pool ls-by-osd ls-by-primary map', look(all)) }),
      crash: group({ ...each('ls ls-new stat', look()), ...each('info', look(one)) }),
      orch: group({ ...each('status ls ps', look(all)), ...each('host device', group(each('ls', look()))) }),
      ...each('balancer progress', group(each('status', look()), true)),
      ...each('daemon tell', asked(questions)),
      config: group(each('get show', setting)),
      node: group({ ls: look({ first: ['name'] }) }),
      device: group(each('ls ls-by-host ls-by-daemon info get-health-metrics', look(all))),
      log: group({ last: look({ first: ['number', 'name', 'name'] }) }),
      telemetry: group(each('status', look())),
    },
  },
  'ceph-volume': {
    manual: 'ceph-volume(8)',
    commands: { lvm: group(each('list', look(all))), raw: group(each('list', look(all))), inventory: look() },
  },
  rados: {
    manual,
    options: spell({ name: '-p --pool --format' }),
    commands: {
      ...each('df lspools', look()),
      stat: look({ first: ['name'], min: 1 }),
      ...each('list-inconsistent-pg list-inconsistent-obj list-inconsistent-snapset', look(one)),
    },
  },
  'radosgw-admin': {
    // Users are shown with their keys, and so are zones and periods; the rest changes.
    manual: 'radosgw-admin(8), Ceph 18',
    style: 'word',
    options: spell({
      name: '--bucket --uid --shard-id --rgw-realm --rgw-zonegroup --rgw-zone',
      number: '--max-entries',
    }),
    commands: paths(
      'bucket list|stats, bucket limit check, sync status, sync error list, gc|lc|realm|zone|zonegroup|reshard|user list, datalog|mdlog|bilog status, usage show',
      look(),
    ),
  },
  cephadm: {
    manual: 'cephadm(8), Ceph 18',
    commands: { ...each('ls', look()) },
  },
  rbd: {
    manual,
    options: spell({ name: '-p --pool --format', flag: '-l --long --pretty-format' }),
    commands: {
      ...each('ls list du info status showmapped', look(all)),
      ...each('snap lock trash', group(each('ls list', look(all)))),
      device: group(each('list ls', look())),
      children: look(one),
      mirror: group({ pool: group(each('status info', look(all))) }),
    },
  },
}
