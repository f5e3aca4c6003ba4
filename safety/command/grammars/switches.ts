import { type Grammars, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const ovs = 'Open vSwitch 3.1'

/** Topics of FRRouting that show no settings, keys and histories. */
const frrTopics =
  '(ip|ipv6) (route|nht|bgp|ospf6?|rip|eigrp|pim|igmp|mroute|multicast|prefix-list|access-list|community-list|interface|protocol|nhrp|msdp|rpf)|bgp|ospf6?|isis|evpn|bfd|mpls|pim|vrf|vrrp|interface|zebra|route-map|memory|thread|version|daemons|watchfrr|nexthop-group|pbr|event|segment-routing|sharp|babel|work-queues'

/** Clients of routers and switches, also in software: their routes, neighbours and flows. */
export const switches: Grammars = {
  ...sameGrammar('birdc birdcl birdc6 birdcl6', {
    // Allows only `show`, because birdc sends its arguments to the daemon as one line, and any
    // other command may configure the daemon. Excluded: where and filter, because a filter is code.
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
    // Excluded: -f and -b read commands, -d chooses a daemon. Settings hold neighbours' passwords.
    manual: 'vtysh(1), FRRouting 8.4',
    style: 'word',
    options: spellOptions({ text: '-c', flag: '-h' }),
    requires: ['-c'],
    // Allows only whole words, because a forbidden word may be shortened.
    refuses: [
      `^(?!show (${frrTopics})( [\\w./: *-]+)?( ?\\| (include|exclude|begin|count) [\\w./: -]+)?$)`,
      '\\bpassw',
    ],
  },
  gobgp: {
    // Excluded: words after a neighbour's name, which may reset or remove it.
    manual: 'gobgp, GoBGP 3',
    options: spellOptions({ flag: '-j --json', text: '-a' }),
    commands: {
      neighbor: { operands: { first: ['text'] } },
      ...paths('global rib summary', {}),
    },
  },
  'ovs-vsctl': {
    // Commands are joined by `--`. Columns of the table SSL hold only names of files.
    manual: `ovs-vsctl(8), ${ovs}`,
    options: spellOptions({ flag: '--no-heading --oneline -V --version', text: '-f --format --columns -t --timeout' }),
    commands: sameGrammar('show list-br list-ports list-ifaces br-exists port-to-br iface-to-br list get', {
      ...plain(`ovs-vsctl(8), ${ovs}`),
      joins: true,
      // Refuses abbreviations of the table SSL, whose names may be shortened, and options of a
      // tunnel, which hold its key.
      refusesOperands: ['^ss?l?$', 'psk|pass|secret|private'],
    }),
  },
  'ovs-ofctl': {
    manual: `ovs-ofctl(8), ${ovs}`,
    options: spellOptions({ text: '-O --protocols', flag: '--names --no-names --stats --no-stats --rsort --sort' }),
    commands: sameGrammar(
      'show dump-flows dump-ports dump-ports-desc dump-tables dump-groups dump-meters dump-aggregate',
      {
        operands: { first: ['name', 'text'], min: 1 },
        // Refuses an address in place of a switch's name.
        refusesOperands: ['^(tcp|ssl|unix|netdev):'],
      },
    ),
  },
  'ovs-appctl': {
    // Excluded: -t names a socket; an unknown word may stop a daemon.
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
    // Requires words, because without words the program starts a session.
    manual: 'lldpcli(8), lldpd 1.0',
    options: spellOptions({ name: '-f' }),
    commands: {
      show: {
        commands: sameGrammar('neighbors interfaces chassis statistics', plain('lldpcli(8)')),
      },
    },
  },
  lldpctl: { manual: 'lldpctl(8), lldpd 1.0', options: spellOptions({ name: '-f' }), operands: { rest: 'name' } },
  teamdctl: {
    manual: 'teamdctl(8), libteam 1.31',
    operands: { first: ['name', 'name', 'name'], min: 2 },
    refuses: ['^(?!(state|config|dump|view|port|\\w*team\\w*|bond\\d+)$)'],
  },
  net: {
    // `net` of Cumulus Linux. Samba's program `net` has no `show`. The whole configuration is
    // excluded, because it holds neighbours' passwords.
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
  nv: {
    // NVUE of NVIDIA, the successor of NCLU. `nv config` and every verb except show set something.
    manual: 'nv show, NVUE of Cumulus Linux 5',
    commands: {
      show: {
        commands: sameGrammar('interface bridge vrf router evpn mlag platform qos service', {
          options: spellOptions({ name: '-o --output --view' }),
          operands: { rest: 'text' },
          refusesOperands: ['^(?![\\w./:-]+$)', 'password', 'secret', 'key', 'user'],
        }),
      },
    },
  },
}
