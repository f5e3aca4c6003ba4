import { flags, type Grammars, oneOf, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const bpftool = 'bpftool(8), Linux 6.1'

/** Programs that control one subsystem of a machine or cluster, with only the verbs that read. */
export const controls: Grammars = {
  bpftool: {
    // Excluded: dump … file writes; pin, attach, load, batch and tracelog change something or never
    // end.
    manual: bpftool,
    style: 'word',
    options: spellOptions({ flag: '-j -p -f -m -n --json --pretty --bpffs --mapcompat --nomount -V --version' }),
    bare: true,
    commands: {
      version: {},
      ...sameGrammar('prog map link cgroup net perf btf struct_ops feature', {
        bare: true,
        commands: sameGrammar('show list tree probe', {
          operands: { rest: 'text' },
          refuses: ['^(file|pinned|visual|macros|batch)$'],
        }),
      }),
    },
  },
  socat: {
    // Allows only two endpoints: the input, and a socket of HAProxy to which a show command is
    // sent. A missing path would be created as a file.
    manual: 'socat(1), 1.7; HAProxy 2.6 Management Guide: Unix Socket commands',
    style: 'plain',
    options: spellOptions({ flag: '-V' }),
    operands: { first: ['text', 'text'], min: 2 },
    requires: ['-V'],
    refuses: [
      '^(?!(-|stdio|STDIO|(unix|UNIX)(-connect|-CONNECT)?:/((var/)?run/(haproxy|hapee)([\\w.-]*/)?[\\w-]*\\.(sock|stat|socket)|var/lib/haproxy/stats(\\.sock)?))$)',
    ],
    input:
      '^\\s*(?:(?:show (?:info|stat|servers (?:state|conn)|sess|table|pools|backend|activity|peers|threads|resolvers|version|ssl cert|cache|profiling)|help)\\s*(?:json|typed)?\\s*(?:;\\s*|\\n)?)+$',
  },
  gluster: {
    // Excluded: heal without info heals, top … clear resets, and remote-host connects to another
    // host.
    manual: 'gluster(8), GlusterFS 10',
    options: spellOptions({ flag: '--mode=script --xml' }),
    commands: {
      ...paths('peer status, pool list, snapshot list|info|status', plain('gluster(8)')),
      volume: {
        commands: {
          ...sameGrammar('info list status get', plain('gluster(8)')),
          ...sameGrammar('heal rebalance quota geo-replication profile top bitrot', {
            ...plain('gluster(8)'),
            operands: { rest: 'name', min: 2 },
            refusesOperands: [
              '^(start|stop|enable|disable|full|source-brick|bigger-file|latest-mtime|commit|force|clear|create|delete|limit-usage|limit-objects|remove|remove-objects|alert-time|soft-timeout|hard-timeout|default-soft-limit|config|pause|resume|fix-layout|push-pem|granular-entry-heal|scrub|scrub-throttle|scrub-frequency|ondemand|incremental|peek)$',
            ],
            second: '^(info|status|list|statistics|read|write|open|opendir|readdir)$',
          }),
        },
      },
    },
  },
  dmsetup: {
    // Excluded: --showkeys of table prints keys; --exec, also with --target, runs a program.
    manual: 'dmsetup(8), lvm2 2.03',
    options: spellOptions({
      flag: '-c -C --columns --tree --noheadings --nameprefixes --rows --nosuffix -v --verbose --noflush',
      text: '-o --options -O --sort -S --select --separator --target',
    }),
    commands: sameGrammar('ls info status table deps version targets', plain('dmsetup(8)')),
  },
  multipathd: {
    manual: 'multipathd(8), multipath-tools 0.9',
    commands: {
      ...paths(
        'show|list paths|maps|topology|status|daemon|config|blacklist|devices|wildcards',
        plain('multipathd(8)'),
      ),
    },
  },
  wg: {
    // Excluded: dump, showconf and the keys, which show secrets.
    manual: 'wg(8), WireGuard tools 1.0',
    bare: true,
    commands: {
      show: {
        operands: { first: ['name', 'name'] },
        refuses: ['^(dump|private-key|preshared-keys)$'],
      },
    },
  },
  ipvsadm: {
    // Requires -L, without which it changes the table. Excluded: -Z resets, -S prints what -R
    // reads.
    ...oneOf(
      'ipvsadm(8)',
      '-L -l --list',
      '-n -c --numeric --stats --rate --exact --connection --timeout --daemon --sort --thresholds --persistent-conn',
      '-t -u -f',
    ),
  },
  brctl: verbs('brctl(8), bridge-utils 1.7', 'show|showmacs|showstp'),
  ebtables: {
    ...oneOf('ebtables(8), 2.0', '-L', '', '-t', { first: ['name'] }),
    style: 'word',
    options: spellOptions({ flag: '-L --Ln --Lc --Lmac2', name: '-t' }),
  },
  rdma: {
    manual: 'rdma(8), iproute2 6.1',
    style: 'word',
    options: spellOptions({ flag: '-d -j -p -details -json -pretty' }),
    commands: sameGrammar('link res resource dev statistic system', {
      bare: true,
      commands: sameGrammar('show list', plain('rdma(8)')),
    }),
  },
  // Excluded: -k and -K, -r and -R of perfquery, and their long forms, which reset counters; a file
  // operand, which is written.
  ...sameGrammar(
    'iblinkinfo ibnetdiscover ibhosts ibswitches ibnodes ibrouters ibqueryerrors',
    flags(
      'infiniband-diags 44',
      '-d -l -p -H -S -R -v -V --line --switches-only --ports --full --down --details --data --report-port',
      '-C -P -t --Ca --Port --timeout',
    ),
  ),
  perfquery: flags('perfquery(8), infiniband-diags 44', '-x -a -l -v --extended --all_ports', '-C -P -t', {
    first: ['number', 'number'],
  }),
  smpquery: { manual: 'smpquery(8), infiniband-diags 44', operands: { first: ['name', 'number', 'number'], min: 2 } },
  ...sameGrammar('ofed_info show_gids ibdev2netdev ibv_devices', flags('MLNX_OFED 5.8; rdma-core 44', '-s -v -n')),
  ...sameGrammar(
    'ibstat ibstatus ibv_devinfo',
    flags('ibstat(8), ibv_devinfo(1), rdma-core 44', '-l -s -p -v', '-d', { first: ['name'] }),
  ),
  iwconfig: { manual: 'iwconfig(8), wireless-tools 30', operands: { first: ['name'] } },
  esxcli: {
    // Checks the last word, which is the verb. Set, add, remove and other changing verbs are not
    // listed.
    manual: 'ESXCLI reference, vSphere 8',
    options: spellOptions({ name: '-d --device -n --nic-name -N --netstack -p -w --world-id', flag: '-a' }),
    operands: { rest: 'name', min: 3 },
    refusesOperands: [
      '^(?!(network|vm|storage|system|hardware|core|device|path|adapter|nic|ip|interface|ipv4|ipv6|neighbor|connection|filesystem|process|version|software|vib|profile|stats|uptime|hostname|maintenanceMode|vsan|health|cluster|nmp|satp|psp|iscsi|portal|vmfs|extent|snapshot|vswitch|standard|dvs|vmware|portgroup|firewall|ruleset|memory|cpu|pci|platform|boot|time|clock|smart|list|get)$)',
    ],
  },
}
