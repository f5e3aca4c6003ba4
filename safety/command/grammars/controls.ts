import { flags, type Grammars, oneOf, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const bpftool = 'bpftool(8), Linux 6.1'
const pcs = 'pcs(8), pcs 0.11'
const ovs = 'Open vSwitch 3.1'

/** Control programs of one subsystem of a machine or of a group of machines: their verbs that look, and no other. */
export const controls: Grammars = {
  bpftool: {
    // dump … file writes, pin, attach, load, batch and tracelog act or never end.
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
  ...sameGrammar('birdc birdcl birdc6 birdcl6', {
    // Words are sent as one line to the daemon; what is not `show` may configure it. A filter is code: where and filter are left out.
    manual: 'birdc, BIRD 2.0: Remote control',
    options: spellOptions({ flag: '-r -v' }),
    commands: sameGrammar('show s sh', {
      commands: sameGrammar('protocols protocol p status memory interfaces route r ospf bfd babel rip roa symbols', {
        operands: { rest: 'text' },
        refuses: ['^(?![\\w./:"-]+$)', '^(filter|where|filtered)$'],
      }),
    }),
  }),
  vtysh: {
    // -f and -b read commands, -d chooses a daemon. Settings hold passwords of neighbours.
    manual: 'vtysh(1), FRRouting 8.4',
    style: 'word',
    options: spellOptions({ text: '-c', flag: '-h' }),
    requires: ['-c'],
    refuses: [
      '^(?!sho?w? [\\w./: *-]+(\\| (include|exclude|begin|count) [\\w./: -]+)?$)',
      '\\b(run\\w*|candidate|startup\\w*|tech\\w*|password|key\\w*|history|log\\w*)\\b',
    ],
  },
  socat: {
    // Only two ends: the input, and a socket of HAProxy that is asked what it shows.
    manual: 'socat(1), 1.7; HAProxy 2.6 Management Guide: Unix Socket commands',
    style: 'plain',
    options: spellOptions({ flag: '-V' }),
    operands: { first: ['text', 'text'], min: 2 },
    requires: ['-V'],
    refuses: [
      '^(?!(-|stdio|STDIO|((unix|UNIX)(-connect|-CONNECT)?:)?/((var/)?run/(haproxy|hapee)([\\w.-]*/)?[\\w-]*\\.(sock|stat|socket)|var/lib/haproxy/stats(\\.sock)?))$)',
    ],
    input:
      '^\\s*(?:(?:show (?:info|stat|servers (?:state|conn)|sess|table|pools|backend|activity|peers|threads|resolvers|version|ssl cert|cache|profiling)|help)\\s*(?:json|typed)?\\s*(?:;\\s*|\\n)?)+$',
  },
  gluster: {
    // heal without info heals, top … clear resets, and remote-host goes elsewhere.
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
    // table --showkeys prints keys, --exec and --target with it run programs.
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
  pcs: {
    // config and cib print passwords of fence devices, and so does a fence device by its name.
    manual: pcs,
    options: spellOptions({ flag: '--full --all --hide-inactive' }),
    commands: {
      ...paths(
        'status resources|cluster|nodes|corosync|quorum|xml|pcsd, resource|stonith status|list, resource failcount show, resource relations, stonith history show, cluster status|corosync, quorum status|config, quorum device status, constraint list, property list, host list, node attribute|utilization, alert show',
        plain(pcs),
      ),
      ...sameGrammar('status', {
        bare: true,
        commands: sameGrammar('resources cluster nodes corosync quorum xml pcsd booth', plain(pcs)),
      }),
      constraint: {
        bare: true,
        commands: sameGrammar('list config location order colocation', {}),
      },
      property: { bare: true, commands: sameGrammar('list config show', plain(pcs)) },
    },
  },
  crm: {
    manual: 'crm(8), crmsh 4.4',
    commands: {
      ...sameGrammar('status', plain('crm(8)')),
      ...paths('resource status, node list|show', plain('crm(8)')),
    },
  },
  crm_mon: {
    // -E runs a program, -h and --as-html write; without -1 it goes on.
    ...oneOf(
      'crm_mon(8)',
      '-1 --one-shot',
      '-A -b -c -f -j -n -N -o -r -R -t -V --inactive --failcounts --group-by-node --show-detail',
    ),
  },
  crm_verify: oneOf('crm_verify(8), Pacemaker 2.1', '-L --live-check', '-V --verbose'),
  'corosync-cfgtool': oneOf('corosync-cfgtool(8), 3.1', '-s -n -b'),
  crm_node: oneOf('crm_node(8), Pacemaker 2.1', '-l -i -n -p -q -L --list --cluster-id --name --partition --quorum'),
  crm_attribute: {
    ...oneOf(
      'crm_attribute(8), Pacemaker 2.1',
      '-G --query',
      '-q --quiet',
      '-n --name -t --type -N --node -l --lifetime',
    ),
    refuses: ['pass', 'secret', 'key', 'token'],
  },
  // The key of the cluster may be a value below `totem`: other prefixes.
  'corosync-cmapctl': {
    manual: 'corosync-cmapctl(8), 3.1',
    options: spellOptions({ flag: '-b', text: '-g' }),
    operands: { first: ['text'], unlessOption: ['-g'], min: 1 },
    refuses: ['^(?!(runtime|stats|nodelist|quorum)\\.)'],
  },
  'corosync-quorumtool': oneOf('corosync-quorumtool(8), 3.1', '-s -l', '-i -p'),
  'ovs-vsctl': {
    // Commands are joined by `--`, and a column of SSL names files alone.
    manual: `ovs-vsctl(8), ${ovs}`,
    options: spellOptions({ flag: '--no-heading --oneline -V --version', text: '-f --format --columns -t --timeout' }),
    commands: sameGrammar('show list-br list-ports list-ifaces br-exists port-to-br iface-to-br list get', {
      ...plain(`ovs-vsctl(8), ${ovs}`),
      joins: true,
      refusesOperands: ['^ssl$'],
    }),
  },
  'ovs-ofctl': {
    manual: `ovs-ofctl(8), ${ovs}`,
    options: spellOptions({ text: '-O --protocols', flag: '--names --no-names --stats --no-stats --rsort --sort' }),
    commands: sameGrammar(
      'show dump-flows dump-ports dump-ports-desc dump-tables dump-groups dump-meters dump-aggregate',
      {
        operands: { first: ['name', 'text'], min: 1 },
        // A switch may be an address.
        refusesOperands: ['^(tcp|ssl|unix|netdev):'],
      },
    ),
  },
  'ovs-appctl': {
    // -t names a socket; an unknown word may stop a daemon.
    manual: `ovs-appctl(8), ${ovs}`,
    commands: sameGrammar(
      'bond/show bond/list fdb/show fdb/stats-show coverage/show dpif/show dpctl/show dpctl/dump-flows dpctl/dump-conntrack lacp/show mdb/show memory/show qos/show stp/show tnl/ports/show upcall/show version vlog/list cluster/status',
      { operands: { rest: 'name' } },
    ),
  },
  'ovs-dpctl': verbs(`ovs-dpctl(8), ${ovs}`, 'show|dump-dps|dump-flows', spellOptions({ flag: '-s -m --names' })),
  ...sameGrammar('ovn-nbctl ovn-sbctl', {
    manual: 'ovn-nbctl(8), ovn-sbctl(8), OVN 23.03',
    options: spellOptions({ flag: '--no-leader-only --no-heading', text: '--columns -f --format -t --timeout' }),
    commands: sameGrammar(
      'show list get ls-list lsp-list lr-list lrp-list lr-route-list lr-nat-list lb-list acl-list lsp-get-addresses lflow-list dump-flows count-flows',
      { ...plain('ovn-nbctl(8), OVN 23.03'), joins: true, refusesOperands: ['^ssl$', '^connection$'] },
    ),
  }),
  lldpcli: {
    // Without words it is a session.
    manual: 'lldpcli(8), lldpd 1.0',
    options: spellOptions({ name: '-f' }),
    commands: {
      show: {
        commands: sameGrammar('neighbors interfaces chassis statistics', plain('lldpcli(8)')),
      },
    },
  },
  lldpctl: { manual: 'lldpctl(8), lldpd 1.0', options: spellOptions({ name: '-f' }), operands: { rest: 'name' } },
  wg: {
    // dump, showconf and the keys show what is secret.
    manual: 'wg(8), WireGuard tools 1.0',
    bare: true,
    commands: {
      show: {
        operands: { first: ['name', 'name'] },
        refuses: ['^(dump|private-key|preshared-keys)$'],
      },
    },
  },
  gobgp: {
    // What follows a neighbour's name may reset or remove it.
    manual: 'gobgp, GoBGP 3',
    options: spellOptions({ flag: '-j --json', text: '-a' }),
    commands: {
      neighbor: { operands: { first: ['text'] } },
      ...paths('global rib summary', {}),
    },
  },
  ipvsadm: {
    // Without -L it changes; -Z resets, -S prints what -R reads.
    ...oneOf(
      'ipvsadm(8)',
      '-L -l --list',
      '-n -c --numeric --stats --rate --exact --connection --timeout --daemon --sort --thresholds --persistent-conn',
      '-t -u -f',
    ),
  },
  brctl: verbs('brctl(8), bridge-utils 1.7', 'show|showmacs|showstp'),
  teamdctl: {
    manual: 'teamdctl(8), libteam 1.31',
    operands: { first: ['name', 'name', 'name'], min: 2 },
    refuses: ['^(?!(state|config|dump|view|port|\\w*team\\w*|bond\\d+)$)'],
  },
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
  // Counters are reset by -k, -K, -r, -R and their long forms; a file as an operand is written.
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
}
