import type { Grammar, Grammars } from '../grammar.ts'
import { each, paths, spell } from './spell.ts'

const plain = (manual: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  operands: { rest: 'name' },
})
const verbs = (manual: string, text: string, options: Grammar['options'] = {}): Grammar => ({
  manual,
  options,
  commands: paths(text, plain(manual)),
})
/** One of these options, and nothing that is not among them. */
const oneOf = (manual: string, flag: string, more = '', operands?: Grammar['operands']): Grammar => ({
  manual,
  options: spell({ flag: `${flag} ${more}`.trim() }),
  requires: flag.split(' '),
  ...(operands ? { operands } : {}),
})
const names = { rest: 'name' } as const

/** Packages, supervisors, graphics cards, boot and tickets of one machine, in the few forms that only look. */
export const local: Grammars = {
  'amd-smi': verbs(
    'amd-smi, ROCm 6',
    'list|static|topology|version',
    spell({ flag: '--json --csv', number: '-g --gpu' }),
  ),
  apk: verbs('apk(8), apk-tools 2.14', 'version|policy', {}),
  bootc: verbs('bootc(8)', 'status', spell({ flag: '--json' })),
  'cloud-init': verbs(
    'cloud-init 23.4',
    'status, analyze blame|show|boot',
    spell({ flag: '--long --wait=false -v --version' }),
  ),
  dcgmi: {
    manual: 'dcgmi, DCGM 3.3',
    commands: {
      discovery: oneOf('dcgmi', '-l'),
      nvlink: oneOf('dcgmi', '-s -e'),
      topo: { manual: 'dcgmi', options: spell({ number: '-g --gpuid' }) },
    },
  },
  debsums: {
    manual: 'debsums(1), 3.0',
    options: spell({ flag: '-a -c -e -l -s --all --changed --silent' }),
    operands: names,
  },
  dkms: verbs('dkms(8)', 'status'),
  efibootmgr: { manual: 'efibootmgr(8), 17', options: spell({ flag: '-v -V --verbose --version' }) },
  fwupdmgr: verbs('fwupdmgr(1), 1.8', 'get-devices|get-history|get-topology', spell({ flag: '--json' })),
  grubby: {
    manual: 'grubby(8)',
    options: spell({ flag: '--default-kernel --default-index --default-title', text: '--info' }),
    requires: ['--default-kernel', '--default-index', '--default-title', '--info'],
  },
  hwclock: oneOf('hwclock(8), util-linux 2.38', '-r --show --get', '-u -l --utc --localtime -v --verbose'),
  klist: { manual: 'klist(1), MIT Kerberos 1.20', options: spell({ flag: '-A -a -e -f -l -n -s -V' }) },
  ldconfig: oneOf('ldconfig(8), glibc 2.36', '-p --print-cache'),
  linstor: verbs(
    'linstor, 1.20',
    'node|resource|volume|storage-pool|resource-definition|resource-group|error-reports list',
    spell({ flag: '-p --pastable' }),
  ),
  ...each('megacli MegaCli MegaCli64', {
    // Every word of another kind sets or starts something.
    manual: 'MegaCLI 8.07 reference',
    style: 'plain',
    operands: { rest: 'text', min: 2 },
    refuses: [
      '^(?!-?(LDInfo|LDPDInfo|PDList|PDInfo|AdpAllInfo|AdpBbuCmd|GetBbuStatus|CfgDsply|EncInfo|AdpCount|ShowSummary|Lall|L\\d+|aALL|a\\d+|NoLog|PhysDrv|\\[\\d+:\\d+\\])$)',
    ],
  }),
  mokutil: oneOf('mokutil(1), 0.6', '--sb-state'),
  nm: {
    manual: 'nm(1), binutils 2.40',
    options: spell({ flag: '-a -C -D -g -n -S -u' }),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  pacman: {
    // -S, -R, -U and -D act; -Qk runs nothing.
    manual: 'pacman(8), 6.0',
    style: 'word',
    options: spell({ flag: '-Q -Qi -Ql -Qe -Qu -Qm -Qo -Qs -Qk -Qq -Qdt' }),
    operands: { rest: 'text' },
    requires: '-Q -Qi -Ql -Qe -Qu -Qm -Qo -Qs -Qk -Qq -Qdt'.split(' '),
  },
  pdnsutil: verbs('pdnsutil(1), 4.7', 'list-all-zones|check-zone|check-all-zones'),
  ...each('rc-service service', {
    manual: 'rc-service(8), OpenRC 0.45; service(8)',
    // A script of init is called with the word behind its name: reads of it are a name and status.
    operands: { first: ['name', 'name'], min: 2 },
    second: '^status$',
  }),
  'rc-status': {
    manual: 'rc-status(8), OpenRC 0.45',
    options: spell({ flag: '-a -c -l -m -s -u --all --crashed --list --servicelist' }),
    operands: names,
  },
  readelf: {
    manual: 'readelf(1), binutils 2.40',
    options: spell({ flag: '-a -d -e -h -l -n -S -s -V -W' }),
    operands: { rest: 'file', min: 1 },
    measures: {},
  },
  'rocm-smi': {
    manual: 'rocm-smi, ROCm 6',
    style: 'word',
    options: spell({
      flag: '-a -t -u -P -i --showtemp --showuse --showpower --showid --showallinfo --showmemuse --json --showclocks --showfan --showerrors',
      text: '--showmeminfo',
    }),
  },
  rocminfo: { manual: 'rocminfo, ROCm 6' },
  smem: { manual: 'smem(8), 1.5', options: spell({ flag: '-H -k -m -n -p -r -t -u -w', text: '-c -s -P -U' }) },
  swanctl: oneOf(
    'swanctl(8), strongSwan 5.9',
    '--list-sas --list-conns --list-pols --stats --version -l -L -P -S',
    '--raw --pretty -r -p',
  ),
  'update-alternatives': {
    manual: 'update-alternatives(1), dpkg 1.21',
    style: 'word',
    options: spell({ name: '--display --list --query', flag: '--get-selections' }),
    requires: ['--display', '--list', '--query', '--get-selections'],
  },
  'virt-top': {
    manual: 'virt-top(1), 1.1',
    options: spell({ flag: '-b --batch -1 -2 -3', number: '-n -d' }),
    endless: { when: 'always', unless: ['-n'], instead: { drop: [], add: ['-b', '-n', '1'] } },
  },
  // The long form of list prints configurations.
  xl: verbs('xl(1), Xen 4.17', 'list|info|vcpu-list|uptime|domid|domname|cpupool-list'),
}
