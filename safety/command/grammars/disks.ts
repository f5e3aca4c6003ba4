import type { Grammars } from '../grammar.ts'
import { each, flags, oneOf, spell, verbs } from './spell.ts'

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
