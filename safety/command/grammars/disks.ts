import { flags, type Grammar, type Grammars, oneOf, paths, sameGrammar, spellOptions, verbs } from '../grammar.ts'

/** Programs for partitions, file systems, disk controllers and other parts of a machine. */
export const disks: Grammars = {
  cpupower: verbs('cpupower(1), Linux 6.1', 'frequency-info|idle-info|info', spellOptions({ text: '-c --cpu' })),
  'edac-util': flags('edac-util(1), 0.18', '-v -s -q -r --verbose --status'),
  'ras-mc-ctl': oneOf('ras-mc-ctl(8), rasdaemon 0.6', '--status --summary --errors --error-count --layout --mainboard'),
  'tuned-adm': verbs('tuned-adm(8), 2.20', 'active|list|profile_info|recommend'),
  aureport: {
    manual: 'aureport(8), audit 3.0',
    style: 'word',
    options: spellOptions({
      flag: '--summary --failed --success -a -au -f -i -l -m -p -s -x --auth --avc --login',
      text: '-ts -te --start --end',
    }),
  },
  lsscsi: flags('lsscsi(8), 0.32', '-c -d -g -i -k -l -L -p -P -s -S -t -U -u -v -w -V'),
  parted: {
    // Refuses parted's own commands, because each of them takes effect at once. Requires -l or -s,
    // without which the program asks what to repair.
    manual: 'parted(8), GNU Parted 3.5',
    options: spellOptions({ flag: '-l -s -m --list --script --machine' }),
    operands: { rest: 'text' },
    refusesOperands: [
      '^(?!/dev/[\\w./-]+$|(print|unit|s|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB|%|compact|chs|cyl|free|devices|all|list|align-check|minimal|min|optimal|opt|\\d{1,3}|version)$)',
    ],
    requires: ['-l', '--list', '-s', '--script'],
    adds: ['-s'],
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
  // Excluded: --cache and the like. Without these options the programs only list.
  ...sameGrammar(
    'pvscan lvscan vgscan',
    flags(
      'pvscan(8), lvscan(8), vgscan(8), lvm2 2.03',
      '-a -b -e -n -s -u -v --all --blockdevice --exported --novolumegroup --short --uuid --verbose --readonly',
    ),
  ),
  arc_summary: flags('arc_summary(1), OpenZFS 2.1', '-a -d -g -r', '-s -p'),
  arcconf: {
    manual: 'arcconf, Adaptec Command Line Utility 4',
    commands: sameGrammar('getconfig getstatus getversion', {
      operands: { first: ['number', 'name', 'number', 'number'] },
      refusesOperands: ['^(?!\\d+$|ad$|al$|ld$|pd$|mc$|ar$|cn$)'],
    }),
  },
  ...sameGrammar('sas2ircu sas3ircu', {
    manual: 'sas2ircu, LSI 20',
    operands: { first: ['text', 'name'], min: 1 },
    refusesOperands: ['^(?!\\d+$|list$|display$|status$)'],
  }),
  omreport: {
    manual: 'omreport, Dell OpenManage Server Administrator 10',
    style: 'plain',
    operands: { rest: 'text', min: 1 },
    refuses: [
      '^(?!\\w+$|(controller|vdisk|pdisk|enclosure|index|connector|battery)=[\\w:.]+$)',
      'config',
      'snmp',
      'user',
    ],
  },
  racadm: verbs('racadm, iDRAC 9', 'getsel|getsysinfo|getversion|getsensorinfo|getled|getsvctag'),
  lvmdiskscan: flags('lvmdiskscan(8), lvm2 2.03', '-l'),
  ...sameGrammar('e2fsck xfs_repair', {
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
    // Refuses an address of a block driver, and json:, which can name any driver.
    manual: 'qemu-img(1), QEMU 7.2',
    commands: {
      ...sameGrammar('info check', {
        options: spellOptions({ flag: '-U --force-share --backing-chain', name: '-f --output' }),
        operands: { first: ['text'], min: 1 },
        refusesOperands: [':'],
      }),
    },
  },
  arcstat: {
    manual: 'arcstat(1), OpenZFS 2.1',
    options: spellOptions({ flag: '-a -p -v -x', text: '-f -s' }),
    operands: { first: ['number', 'number'] },
    endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
  },
  nfsiostat: {
    manual: 'nfsiostat(8), nfs-utils 2.6',
    options: spellOptions({ flag: '-a -d -p -s' }),
    operands: { rest: 'text' },
    endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
  },
  rpcinfo: {
    manual: 'rpcinfo(8), rpcbind 1.2',
    options: spellOptions({ flag: '-p -s -m' }),
    operands: { first: ['host'] },
    requires: ['-p', '-s', '-m'],
  },
  repquota: flags('repquota(8), quota 4.06', '-a -g -i -n -p -s -t -u -v', '', { rest: 'text' }),
  ...sameGrammar('pvesr', verbs('pvesr(1), Proxmox VE 8', 'list|status')),
  pveceph: verbs('pveceph(1), Proxmox VE 8', 'status, pool ls, osd details'),
  pvenode: verbs(
    'pvenode(1), Proxmox VE 8',
    'task list|status, cert info',
    spellOptions({ text: '--errors --limit --typefilter --since --until --vmid --output-format' }),
  ),
  'proxmox-backup-manager': verbs(
    'proxmox-backup-manager(1), 3.1',
    'datastore|task|verify-job|sync-job list, garbage-collection status, versions, disk list',
    spellOptions({ text: '--output-format --limit' }),
  ),
  ...sameGrammar('storcli storcli64 perccli perccli64', {
    // Excluded: words that change something; `file=` and `logfile=` write.
    manual: 'StorCLI 7.1 reference',
    // Checks the second word as the verb, because the first one is the place.
    second: '^(show|ctrlcount|all|/.*)$',
    style: 'plain',
    operands: { rest: 'text', min: 1 },
    refuses: [
      '^(?!(/(e|s|v|f|d|p)(\\d+|all)|/c(\\d|all)(/(v|e|s|f|d|bbu|cv|p)(\\d+|all)?)*|show|all|J|nolog|status|rebuild|rebuildrate|copyback|migrate|bgi|patrolread|pr|prrate|cc|ccrate|consistencycheck|initialization|init|events|alilog|termlog|ctrlcount|health|preservedcache|smart|freespace|jbod|temperature|time|aso|badblocks|phyerrorcounters|autorebuild|properties|bootdrive|pdcache|perfmode)$)',
    ],
  }),
  ...sameGrammar('ssacli hpssacli hpacucli', {
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
/** Grammar for a daemon and requests to it: each word is the name of a daemon or of a request. */
const asked = (questions: string): Grammar => ({
  manual,
  operands: { rest: 'text', min: 2 },
  refusesOperands: [
    `^(?!((osd|mon|mds|mgr|client|rgw)\\.([\\w.-]+|\\*)|(?!\\w*(pass|key|secret|token|auth))(osd|mon|mds|mgr|bluestore|bluefs|rocksdb|filestore|ms|bdev|debug|rbd|rgw|log)_\\w+|/(var/)?run/ceph/[\\w./-]+\\.asok|\\d{1,4}|${questions.trim().split(/\s+/).join('|')})$)`,
  ],
})
const questions = `status version perf dump schema config get client objecter_requests dump_recovery_reservations dump_blocklist dump_watchers get_command_descriptions ops dump_ops_in_flight dump_blocked_ops dump_historic_ops dump_historic_slow_ops
  dump_osd_network dump_mempools heap_stats dump_objectstore_kv_stats bluefs stats mon_status quorum_status dump_scrubs get_latest_osdmap dump_pgstate_history session ls`
const orchestrated = spellOptions({
  flag: '--wide',
  name: '--daemon_type --daemon-type --daemon_id --hostname --service_name --service-name --service_type --service-type',
})
/** Requests that may be sent to a daemon's own socket. */
const ofSocket =
  'dump_ops_in_flight dump_blocked_ops dump_historic_ops dump_historic_slow_ops dump_osd_network dump_mempools dump_scrubs get_latest_osdmap dump_pgstate_history heap_stats'
/** Allows one setting without a password by its name; a list of all settings shows passwords. */
const setting: Grammar = {
  manual,
  operands: { first: ['name', 'name'], min: 2 },
  refuses: ['pass', 'key', 'secret', 'token', 'auth'],
}

/**
 * Excluded: auth, config, config-key and radosgw-admin, which print keys; every verb that changes
 * something.
 */
export const ceph: Grammars = {
  ceph: {
    manual,
    options: spellOptions({
      name: '-f --format --cluster -n --name --id',
      config: '-c --conf',
      socket: '--admin-daemon',
      credential: '-k --keyring',
      number: '--connect-timeout',
      flag: '-v --version --concise --verbose',
    }),
    // Allows -s, which is short for status. Excluded: -w, which never ends.
    keywords: ['-s', '--status'],
    commands: {
      ...sameGrammar('-s --status status fsid versions features quorum_status mon_status time-sync-status', look()),
      ...sameGrammar('health df', look({ first: ['name'] })),
      osd: group({
        // Allows `osd perf`, which reads. Excluded: `osd perf query add`, which starts a
        // measurement.
        ...sameGrammar('stat status perf utilization blocked-by test-reweight-by-utilization', look()),
        ...sameGrammar('ls dump tree df', look(all)),
        ...sameGrammar('find metadata ok-to-stop safe-to-destroy count-metadata', look({ rest: 'name', min: 1 })),
        ...sameGrammar('numa-status lspools versions getmaxosd get-require-min-compat-client', look()),
        ...sameGrammar('info ls-tree', look({ rest: 'name' })),
        map: look({ first: ['name', 'name'], min: 2 }),
        ...sameGrammar('blocklist blacklist', group(sameGrammar('ls', look()))),
        pool: group({
          ...sameGrammar('ls stats autoscale-status get-quota', look(all)),
          application: group({ get: look({ rest: 'name' }) }),
          get: look({ first: ['name', 'name'], min: 2 }),
        }),
        crush: group({
          ...sameGrammar('tree ls dump show-tunables get-tunable get-device-class', look(all)),
          ...sameGrammar('rule class weight-set', group(sameGrammar('ls ls-osd dump', look(all)))),
        }),
        'erasure-code-profile': group({ ls: look(), ...sameGrammar('get', look(one)) }),
      }),
      mon: group({
        ...sameGrammar('stat dump metadata versions count-metadata ok-to-stop', look(all)),
        feature: group(sameGrammar('ls', look())),
      }),
      mgr: group({
        ...sameGrammar('stat services dump metadata versions count-metadata', look(all)),
        module: group(sameGrammar('ls', look())),
      }),
      mds: group(sameGrammar('stat metadata versions count-metadata ok-to-stop', look(all))),
      fs: group({
        ...sameGrammar('ls status dump get', look(all)),
        ...sameGrammar('subvolume subvolumegroup volume', group(sameGrammar('ls info getpath', look(all)))),
        'snap-schedule': group(sameGrammar('status list', look({ rest: 'text' }))),
      }),
      nfs: group({ cluster: group(sameGrammar('ls info', look(all))) }),
      pg: {
        manual,
        operands: { rest: 'text', min: 1 },
        only: [
          { value: '^(query|list_unfound)$', first: '^\\d+\\.[0-9a-f]+$' },
          // Allows only `query` and `list_unfound` after the number of a placement group.
          {
            value: '^(?!query$|list_unfound$|\\d+\\.[0-9a-f]+$)',
            first: '^(stat|dump|dump_stuck|ls|ls-by-pool|ls-by-osd|ls-by-primary|map)$',
          },
        ],
      },
      // Requests for the daemon behind a socket.
      ...sameGrammar(ofSocket, { manual, operands: { rest: 'text' }, requires: ['--admin-daemon'] }),
      crash: group({ ...sameGrammar('ls ls-new stat', look()), ...sameGrammar('info', look(one)) }),
      orch: group({
        ...sameGrammar('status ls ps', { ...look(all), options: orchestrated }),
        ...sameGrammar('host device', group(sameGrammar('ls', { ...look(all), options: orchestrated }))),
        upgrade: group({ status: look() }),
        osd: group({ rm: group({ status: look() }) }),
      }),
      ...sameGrammar('balancer progress', group(sameGrammar('status', look()), true)),
      ...sameGrammar('daemon tell', asked(questions)),
      config: group(sameGrammar('get show', setting)),
      node: group({ ls: look({ first: ['name'] }) }),
      device: group(sameGrammar('ls ls-by-host ls-by-daemon info get-health-metrics', look(all))),
      log: group({ last: look({ first: ['number', 'name', 'name'] }) }),
      telemetry: group(sameGrammar('status', look())),
    },
  },
  'ceph-volume': {
    manual: 'ceph-volume(8)',
    commands: {
      lvm: group(sameGrammar('list', look(all))),
      raw: group(sameGrammar('list', look(all))),
      inventory: look(),
    },
  },
  rados: {
    manual,
    options: spellOptions({ name: '-p --pool --format' }),
    commands: {
      ...sameGrammar('df lspools', look()),
      stat: look({ first: ['name'], min: 1 }),
      lssnap: look(),
      listwatchers: look(one),
      ...sameGrammar('list-inconsistent-pg list-inconsistent-obj list-inconsistent-snapset', look(one)),
    },
  },
  'radosgw-admin': {
    // Excluded: users, zones and periods are shown with their keys; other verbs change something.
    manual: 'radosgw-admin(8), Ceph 18',
    style: 'word',
    options: spellOptions({
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
    commands: { ...sameGrammar('ls', look()) },
  },
  rbd: {
    manual,
    options: spellOptions({ name: '-p --pool --format', flag: '-l --long --pretty-format' }),
    commands: {
      ...sameGrammar('ls list du info status showmapped', look(all)),
      ...sameGrammar('snap lock trash', group(sameGrammar('ls list', look(all)))),
      device: group(sameGrammar('list ls', look())),
      children: look(one),
      ...sameGrammar('mirror journal pool', group(sameGrammar('status info stats', look(all)))),
      mirror: group({
        ...sameGrammar('pool image', group(sameGrammar('status info', look(all)))),
        snapshot: group({ schedule: group(sameGrammar('ls list status', look(all))) }),
      }),
      ...sameGrammar('namespace group', group(sameGrammar('ls list', look(all)))),
    },
  },
}
