import { type Grammar, type Grammars, gnu, paths, sameGrammar, spellOptions } from '../grammar.ts'

// Excluded: --config, which takes a setting that may run a program; --test and the like, which
// belong to verbs.
const lvm: Grammar = {
  manual: 'lvs(8), pvs(8), vgs(8), lvm2 2.03',
  options: spellOptions({
    flag: `-a -c -C -h -m -P -q -v --all --aligned --columns --colon --foreign --maps --nameprefixes --noheadings --nosuffix --partial
      --readonly --rows --segments --short --unbuffered --unquoted --verbose --help --version`,
    text: '-o -O -S --options --reportformat --select --separator --sort --units',
  }),
  operands: { rest: 'text' },
}
const pools: Grammar['operands'] = { rest: 'text' }

/**
 * Programs about disks, volumes and file systems. A device counts as text, because only labels and
 * states are printed.
 */
export const storage: Grammars = {
  blkid: {
    // Excluded: -g and -w write the cache, -c reads another cache.
    manual: 'blkid(8), util-linux 2.38',
    options: spellOptions({
      flag: '-d -D -i -k -l -p -V -h --probe --list-filesystems',
      text: '-L -n -o -s -t -u -U --label --match-tag --match-token --output --uuid',
    }),
    operands: { rest: 'text' },
  },
  btrfs: {
    manual: 'btrfs(8), btrfs-progs 6.2',
    commands: {
      ...sameGrammar('filesystem fi', {
        commands: sameGrammar('df du show usage', {
          options: spellOptions({
            flag: '-b -h -H -k -m -g -t -T -d -s -v --raw --human-readable --summarize --all-devices --mounted',
          }),
          operands: pools,
        }),
      }),
      ...sameGrammar('device', {
        commands: {
          ...sameGrammar('usage', { operands: pools }),
          stats: { options: spellOptions({ flag: '-c -T --check' }), operands: pools },
        },
      }),
      ...sameGrammar('scrub balance', {
        commands: sameGrammar('status', {
          options: spellOptions({ flag: '-d -R -v' }),
          operands: pools,
        }),
      }),
      ...sameGrammar('subvolume', {
        commands: sameGrammar('list show get-default', {
          options: spellOptions({ flag: '-a -c -d -g -o -p -q -r -R -s -t -u' }),
          operands: pools,
        }),
      }),
    },
  },
  drbdadm: {
    manual: 'drbdadm(8), drbd-utils 9.22',
    commands: sameGrammar('cstate dstate role sh-resources status', {
      operands: { rest: 'name' },
    }),
  },
  drbdsetup: {
    manual: 'drbdsetup(8)',
    commands: sameGrammar('status', {
      options: spellOptions({ flag: '--verbose --statistics --json' }),
      operands: { rest: 'name' },
    }),
  },
  dumpe2fs: {
    manual: 'dumpe2fs(8), e2fsprogs 1.47',
    options: spellOptions({ flag: '-b -f -g -h -x -V' }),
    operands: { first: ['text'], min: 1 },
    requires: ['-h'],
  },
  exportfs: {
    // Excluded: -r, -u, -a and an operand, which change the table.
    manual: 'exportfs(8), nfs-utils 2.6',
    options: spellOptions({ flag: '-s -v' }),
  },
  findmnt: {
    // Excluded: -F reads another table, -p never ends.
    manual: 'findmnt(8), util-linux 2.38',
    options: spellOptions({
      flag: `-a -A -b -c -C -d -D -e -f -h -i -J -k -l -m -n -P -r -R -s -u -U -v -V -x --all --ascii --bytes --df --evaluate --fstab
        --first-only --json --kernel --list --mtab --noheadings --pairs --raw --real --pseudo --submounts --verify ${gnu}`,
      text: '-M -N -o -O -S -t -T --mountpoint --options --output --source --target --types',
    }),
    operands: { rest: 'text' },
  },
  hdparm: {
    // Requires one of these letters, which print; most others set something.
    manual: 'hdparm(8), hdparm 9.65',
    options: spellOptions({ flag: '-C -g -i -I -v' }),
    operands: { rest: 'text', min: 1 },
    requires: ['-C', '-g', '-i', '-I', '-v'],
  },
  iscsiadm: {
    // Allows only a mode alone, which lists. Excluded: --op, --login, --logout and -R, which change
    // something.
    manual: 'iscsiadm(8), open-iscsi 2.1',
    options: spellOptions({ name: '-m --mode', number: '-P --print' }),
    requires: ['-m', '--mode'],
    refuses: ['^(discovery|discoverydb|fw|host)$'],
  },
  losetup: {
    manual: 'losetup(8), util-linux 2.38',
    options: spellOptions({ flag: '-a -l -n -J --all --json --list --noheadings --raw', text: '-O --output' }),
    requires: ['-a', '-l', '--all', '--list'],
  },
  lsblk: {
    manual: 'lsblk(8), util-linux 2.38',
    options: spellOptions({
      flag: `-a -A -b -d -D -f -h -i -J -l -m -M -n -N -O -p -P -r -s -S -t -T -v -V -z --all --ascii --bytes --discard --fs --inverse
        --json --list --nodeps --noheadings --nvme --output-all --pairs --paths --perms --raw --scsi --topology --tree --zoned ${gnu}`,
      text: '-E -e -I -o -w -x --dedup --exclude --include --output --sort --width',
    }),
    operands: { rest: 'text' },
  },
  ...sameGrammar('lvs pvs vgs lvdisplay pvdisplay vgdisplay', lvm),
  mdadm: {
    manual: 'mdadm(8), mdadm 4.2',
    options: spellOptions({
      flag: '-D -E -Q -v -Y -b -t --detail --examine --examine-bitmap --export --query --scan --test --verbose --brief',
    }),
    operands: { rest: 'text' },
    requires: ['-D', '-E', '-Q', '--detail', '--examine', '--query'],
  },
  mount: {
    // Refuses any operand, because it would mount.
    manual: 'mount(8), util-linux 2.38',
    options: spellOptions({ flag: '-l -h -V --help --version --show-labels', text: '-t --types' }),
  },
  mountpoint: {
    manual: 'mountpoint(1), util-linux 2.38',
    options: spellOptions({ flag: '-d -q -x --quiet --fs-devno --devno --nofollow' }),
    operands: { rest: 'text', min: 1 },
  },
  multipath: {
    manual: 'multipath(8), multipath-tools 0.9',
    options: spellOptions({ flag: '-l -ll', number: '-v' }),
    style: 'word',
    operands: { rest: 'text' },
    requires: ['-l', '-ll'],
  },
  nfsstat: {
    manual: 'nfsstat(8), nfs-utils 2.6',
    options: spellOptions({ flag: '-2 -3 -4 -c -l -m -n -r -s -v --all --client --mounts --nfs --rpc --server' }),
  },
  nvme: {
    manual: 'nvme(1), nvme-cli 2.4',
    commands: sameGrammar(
      `ana-log effects-log endurance-log error-log fw-log id-ctrl id-ns list list-ns list-subsys smart-log`,
      {
        options: spellOptions({
          flag: '-H -v --human-readable --verbose --all -a',
          text: '-n -o -e --namespace-id --output-format --log-entries',
        }),
        operands: { rest: 'text' },
      },
    ),
  },
  quota: {
    manual: 'quota(1), quota 4.06',
    options: spellOptions({ flag: '-g -l -p -q -s -u -v -w' }),
    operands: { rest: 'name' },
  },
  showmount: {
    manual: 'showmount(8), nfs-utils 2.6',
    options: spellOptions({ flag: '-a -d -e --all --directories --exports --no-headers' }),
    operands: { first: ['host'] },
  },
  smartctl: {
    // Excluded: -s, -o, -S and -t change something or start a test; -B reads another database.
    manual: 'smartctl(8), smartmontools 7.3',
    options: spellOptions({
      flag: '-a -A -c -h -H -i -j -V -x --all --attributes --capabilities --health --info --json --scan --scan-open --xall',
      text: '-d -f -F -g -l -n -q -r -T -v --device --format --get --log --nocheck --quietmode --tolerance',
    }),
    operands: { first: ['text'] },
    // Refuses `scttempint,N`, which sets the interval; other kinds of `-l` print.
    refuses: ['scttempint', 'scterc,', 'reset'],
  },
  swapon: {
    manual: 'swapon(8), util-linux 2.38',
    options: spellOptions({ flag: '-s --bytes --noheadings --raw --summary', 'text?': '--show' }),
    requires: ['-s', '--summary', '--show'],
  },
  tune2fs: {
    manual: 'tune2fs(8), e2fsprogs 1.47',
    options: spellOptions({ flag: '-l' }),
    operands: { first: ['text'], min: 1 },
    requires: ['-l'],
  },
  xfs_info: { manual: 'xfs_info(8), xfsprogs 6.1', operands: { first: ['text'], min: 1 } },
  zfs: {
    manual: 'zfs(8), OpenZFS 2.1',
    commands: {
      ...sameGrammar('get', {
        options: spellOptions({ flag: '-H -p -r', text: '-d -o -s -t' }),
        operands: { rest: 'text', min: 1 },
      }),
      ...sameGrammar('list', {
        options: spellOptions({ flag: '-H -p -r', text: '-d -o -s -S -t' }),
        operands: pools,
      }),
      ...sameGrammar('groupspace userspace', {
        options: spellOptions({ flag: '-H -i -n -p', text: '-o -s -S -t' }),
        operands: pools,
      }),
      version: {},
      ...sameGrammar('holds', { options: spellOptions({ flag: '-H -r' }), operands: pools }),
    },
  },
  zpool: {
    manual: 'zpool(8), OpenZFS 2.1',
    commands: {
      ...sameGrammar('list status', {
        // Excluded: -c, which runs scripts. A number as operand repeats the output.
        options: spellOptions({ flag: '-D -e -g -H -i -L -p -P -s -t -v -x', text: '-o -T' }),
        operands: pools,
        endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
      }),
      ...sameGrammar('get', {
        options: spellOptions({ flag: '-H -p', text: '-o' }),
        operands: pools,
      }),
      ...sameGrammar('history', {
        options: spellOptions({ flag: '-i -l' }),
        operands: pools,
      }),
      ...sameGrammar('events', {
        options: spellOptions({ flag: '-f -H -v' }),
        operands: pools,
        endless: { when: ['-f'], instead: { drop: ['-f'], add: [] } },
      }),
      ...sameGrammar('iostat', {
        options: spellOptions({ flag: '-g -H -l -L -n -p -P -q -r -v -w -y', text: '-T' }),
        operands: pools,
        endless: { when: 'interval', instead: { drop: [], add: ['2'] } },
      }),
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
}
