import type { Grammars } from '../grammar.ts'
import { each, spell } from './spell.ts'

/** What the machine is made of and how warm it is. */
export const hardware: Grammars = {
  dmidecode: {
    // --dump-bin writes, --from-dump reads elsewhere.
    manual: 'dmidecode(8), dmidecode 3.4',
    options: spell({
      flag: '-h -q -u -V --help --no-sysfs --quiet --version',
      text: '-H -s -t --handle --string --type',
    }),
  },
  ipmitool: {
    // -H goes to another machine, -f reads a password, exec and shell read commands; clear, set, power and user act.
    manual: 'ipmitool(1), 1.8',
    options: spell({ flag: '-c -v -V -h' }),
    commands: {
      ...each('chassis', {
        manual: 'ipmitool(1)',
        commands: {
          power: { manual: 'ipmitool(1)', commands: { status: { manual: 'ipmitool(1)' } } },
          ...each('poh restart_cause status', { manual: 'ipmitool(1)' }),
        },
      }),
      fru: {
        manual: 'ipmitool(1)',
        bare: true,
        commands: {
          ...each('list', { manual: 'ipmitool(1)' }),
          print: { manual: 'ipmitool(1)', operands: { first: ['number'] } },
        },
      },
      mc: { manual: 'ipmitool(1)', commands: { ...each('guid info selftest', { manual: 'ipmitool(1)' }) } },
      power: { manual: 'ipmitool(1)', commands: { status: { manual: 'ipmitool(1)' } } },
      sdr: {
        manual: 'ipmitool(1)',
        bare: true,
        commands: {
          ...each('elist info list', { manual: 'ipmitool(1)', operands: { first: ['name'] } }),
          ...each('type', { manual: 'ipmitool(1)', operands: { first: ['text'] } }),
        },
      },
      sel: {
        manual: 'ipmitool(1)',
        bare: true,
        commands: {
          ...each('elist list', { manual: 'ipmitool(1)', operands: { rest: 'name' } }),
          ...each('info', { manual: 'ipmitool(1)' }),
        },
      },
      sensor: {
        manual: 'ipmitool(1)',
        bare: true,
        commands: {
          list: { manual: 'ipmitool(1)' },
          ...each('get reading', { manual: 'ipmitool(1)', operands: { rest: 'text', min: 1 } }),
        },
      },
    },
  },
  lshw: {
    // -dump writes, -X opens a window.
    manual: 'lshw(1), lshw 02.19',
    style: 'word',
    options: spell({
      flag: '-businfo -html -json -notime -numeric -quiet -sanitize -short -xml -version',
      text: '-C -c -class -disable -enable',
    }),
  },
  lspci: {
    // -A and -O choose back ends, -q asks the DNS, -Q writes a cache, -F and -p read files.
    manual: 'lspci(8), pciutils 3.9',
    options: spell({ flag: '-b -D -k -m -mm -n -nn -P -PP -t -v -vv -vvv -x -xx -xxx', text: '-d -s' }),
  },
  lsusb: {
    manual: 'lsusb(8), usbutils 014',
    options: spell({ flag: '-t -v -V --tree --verbose --version', text: '-d -s' }),
  },
  'nvidia-smi': {
    manual: 'nvidia-smi(1), driver 535',
    style: 'word',
    endless: { when: ['-l', '--loop'], instead: { drop: ['-l', '--loop'], add: [] } },
    options: spell({
      number: '-l --loop',
      flag: '-L -q -x --list-gpus --query',
      text: '-d -i --display --format --id',
      'text?': '--query-gpu --query-compute-apps --format --id',
    }),
  },
  numactl: {
    manual: 'numactl(8), numactl 2.0',
    options: spell({ flag: '-H -s --hardware --show' }),
    requires: ['-H', '-s', '--hardware', '--show'],
  },
  numastat: { manual: 'numastat(8), numactl 2.0', options: spell({ flag: '-c -m -n -s -v -z', text: '-p' }) },
  sensors: {
    manual: 'sensors(1), lm-sensors 3.6',
    options: spell({ flag: '-A -f -h -j -u -v --no-adapter --fahrenheit' }),
    operands: { rest: 'name' },
  },
}
