import { type Grammar, type Grammars, oneOf, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const ip8 = 'ip(8), iproute2 6.1'

/**
 * Grammar of `show` in its usual spellings. Other abbreviations of ip(8) are unknown on purpose,
 * like every verb that changes something. Operands are names, prefixes and the selector's key
 * words, none of which changes anything.
 */
const show = sameGrammar('list lst ls l show sh', { manual: ip8, operands: { rest: 'text' } })
/**
 * Grammar in which `s` is short for show, for addresses, neighbours and routes. `ip link s` and `ip
 * netns s` set.
 */
const shortShow = { ...show, ...sameGrammar('s', { manual: ip8, operands: { rest: 'text' } }) } as const
const get: Grammar = { manual: ip8, operands: { rest: 'text', min: 1 } }
const object: Grammar = { manual: ip8, bare: true, commands: show }

/** Words of the filters of ss(8). */
const filter =
  `all|and|or|not|state|exclude|dport|sport|dst|src|eq|ne|neq|ge|geq|le|leq|gt|lt|connected|synchronized|bucket|big|
established|syn-sent|syn-recv|fin-wait-1|fin-wait-2|time-wait|closed|close-wait|last-ack|listening|listen|closing|inet|inet6|unix|
tcp|udp|raw|netlink|packet`.replaceAll('\n', '')

/** Programs about links, addresses, routes and sockets of this machine. */
export const network: Grammars = {
  arp: {
    // Excluded: -s, -d and -f, which change the table.
    manual: 'arp(8), net-tools 2.10',
    options: spellOptions({ flag: '-a -D -e -n -v --device --numeric --verbose', name: '-H -i' }),
    operands: { first: ['host'] },
  },
  bridge: {
    manual: 'bridge(8), iproute2 6.1',
    options: spellOptions({ flag: '-c -d -j -o -p -s -4 -6 -details -json -oneline -pretty -statistics -color' }),
    style: 'word',
    commands: sameGrammar('fdb link mdb vlan', { ...object }),
  },
  conntrack: {
    // Reads with -L and the like, but not with -z, which zeroes counters. Excluded: -D, -F, -I and
    // -U change; -E never ends.
    manual: 'conntrack(8), conntrack-tools 1.4',
    options: spellOptions({
      flag: '-C -L -n -g -S --any-nat --count --dump --src-nat --dst-nat --stats',
      text: '-d -f -m -o -p -q -r -s --dst --family --mark --orig-dst --orig-src --output --proto --src --sport --dport --state --zone -w',
    }),
    operands: { first: ['name'] },
    requires: ['-C', '-L', '-S', '--count', '--dump', '--stats'],
  },
  ethtool: {
    // Excluded: capital letters, --set-*, -r, -t, -p, -f and --flash, which change something.
    manual: 'ethtool(8), ethtool 6.1',
    options: spellOptions({
      flag: `-a -c -g -i -k -l -m -n -P -S -T -u -x --driver --module-info --show-channels --show-coalesce --show-eee --show-features
        --show-fec --show-nfc --show-offload --show-pause --show-permaddr --show-priv-flags --show-ring --show-rxfh
        --show-time-stamping --statistics --json -h --help --version`,
    }),
    operands: { first: ['name'], min: 1 },
  },
  ifconfig: {
    // Excluded: a second operand, which sets something.
    manual: 'ifconfig(8), net-tools 2.10',
    options: spellOptions({ flag: '-a -s -v' }),
    operands: { first: ['name'] },
  },
  ip: {
    // Excluded: -batch reads commands, -netns enters another namespace, -force continues after
    // errors.
    manual: ip8,
    style: 'word',
    options: spellOptions({
      flag: `-0 -4 -6 -B -V -a -br -brief -c -color -d -details -h -human -iec -j -json -M -N -Numeric -o -oneline -p -pretty -r
        -resolve -s -stats -statistics -ss -t -timestamp -ts -c=never -color=never`,
      text: '-f -family',
    }),
    commands: {
      ...sameGrammar('a addr address n neigh neighbor neighbour', { ...object, commands: shortShow }),
      ...sameGrammar('l link maddr maddress mroute nexthop ntable ru rule tcp_metrics token tunnel vrf', object),
      ...sameGrammar('netns', {
        bare: true,
        commands: { ...sameGrammar('list ls l show', {}), identify: get, pids: get },
      }),
      ...sameGrammar('r ro route', {
        bare: true,
        commands: { ...shortShow, ...sameGrammar('get g', get) },
      }),
      // Excluded: xfrm state shows keys, monitor never ends.
    },
  },
  ...sameGrammar('ipset', {
    manual: 'ipset(8), ipset 7.17',
    options: spellOptions({ flag: '-n -q -s -t -name -quiet -sorted -terse', text: '-o -output' }),
    style: 'word',
    commands: sameGrammar('list', { operands: { first: ['name'] } }),
  }),
  ...sameGrammar('iptables ip6tables iptables-legacy iptables-nft ip6tables-legacy ip6tables-nft', {
    // Excluded: -Z with -L zeroes the counters that it prints; -M runs a program.
    manual: 'iptables(8), iptables 1.8',
    options: spellOptions({
      flag: '-L -n -S -v -x --exact --line-numbers --list --list-rules --numeric --verbose',
      name: '-t --table',
      number: '-w',
    }),
    operands: { first: ['name', 'number'] },
    requires: ['-L', '--list', '-S', '--list-rules'],
  }),
  ...sameGrammar('iptables-save ip6tables-save', {
    // Excluded: -f writes, -M runs a program.
    manual: 'iptables-save(8), iptables 1.8',
    options: spellOptions({ flag: '-c --counters', name: '-t --table' }),
  }),
  iw: {
    // Excluded: scan without dump, which transmits.
    manual: 'iw(8), iw 5.19',
    commands: {
      ...sameGrammar('dev', {
        bare: true,
        operands: { first: ['name', 'name', 'name'] },
        refuses: ['^(?!(info|link|station|dump|survey|interface|get|power_save|wl[a-z0-9]*)$)'],
      }),
      ...sameGrammar('list phy reg', {
        bare: true,
        operands: { first: ['name'] },
        refuses: ['^(?!(get|info|phy[0-9]+)$)'],
      }),
    },
  },
  netstat: {
    manual: 'netstat(8), net-tools 2.10',
    options: spellOptions({
      flag: `-4 -6 -A -a -c -C -e -F -g -i -l -M -n -N -o -p -r -s -t -u -U -v -w -W -x --all --continuous --extend --groups
        --interfaces --listening --numeric --numeric-hosts --numeric-ports --program --route --statistics --tcp --timers --udp
        --unix --verbose --wide`,
    }),
    endless: { when: ['-c', '--continuous'], instead: { drop: ['-c', '--continuous'], add: [] } },
  },
  nft: {
    // Excluded: -f reads commands, -i is a session, -D defines; verbs that reset counters are not
    // listed.
    manual: 'nft(8), nftables 1.0',
    options: spellOptions({ flag: '-a -j -n -N -p -s -S -t -T -u -y --handle --json --numeric --stateless --terse' }),
    // Refuses a semicolon, because the words are joined and read as commands, and a semicolon
    // begins another command.
    commands: { list: { operands: { rest: 'text', min: 1 }, refuses: ['[^a-z0-9_.-]'] } },
  },
  nmcli: {
    // Excluded: -s, without which a connection hides its secrets; -a, which asks for input.
    manual: 'nmcli(1), NetworkManager 1.42',
    options: spellOptions({
      flag: '-o -p -t --overview --pretty --terse -h --help --version',
      text: '-c -e -f -g -m -w --colors --escape --fields --get-values --mode',
    }),
    bare: true,
    commands: {
      ...sameGrammar('g general', {
        bare: true,
        commands: sameGrammar('status permissions', {}),
      }),
      ...sameGrammar('c con connection d dev device', {
        bare: true,
        commands: {
          ...sameGrammar('status', {}),
          ...sameGrammar('s sh show', {
            options: spellOptions({ flag: '--active' }),
            operands: { rest: 'text' },
          }),
        },
      }),
      ...sameGrammar('n networking r radio', { bare: true }),
    },
  },
  route: {
    manual: 'route(8), net-tools 2.10',
    options: spellOptions({ flag: '-4 -6 -C -e -ee -F -n -v --numeric --extend' }),
  },
  ss: {
    // Excluded: -K kills sockets, -E never ends, -D writes, -F reads a filter.
    manual: 'ss(8), iproute2 6.1',
    options: spellOptions({
      flag: `-0 -4 -6 -a -b -B -d -e -H -i -l -m -M -n -o -O -p -Q -r -s -S -t -T -u -V -w -W -x -Z -z --all --context --dccp --extended
        --info --inet-sockopt --ipv4 --ipv6 --listening --memory --mptcp --no-header --no-queues --numeric --oneline --options
        --packet --processes --raw --resolve --sctp --summary --tcp --threads --tipc --tos --udp --unix --vsock --xdp -h --help
        --version`,
      text: '-A -f --family --query',
    }),
    // A filter: `state established '( dport = :5432 )'`. Host names in it would be looked up, so
    // only the words of filters are allowed.
    operands: { rest: 'text' },
    refuses: [
      `(^|[\\s(!=<>&|])(?!(${filter})(?![\\w.-]))[a-z_.-]`,
      '(^|[\\s(!=<>&|])[0-9][0-9.-]*[a-z_]',
      // Refuses a number that is neither a port nor an address, because it is looked up as a name.
      '(^|[\\s(!=<>&|])[0-9]+[-_][0-9]',
      '[^\\x00-\\x7f]',
    ],
  },
  tc: {
    manual: 'tc(8), iproute2 6.1',
    style: 'word',
    options: spellOptions({
      flag: '-d -details -g -graph -iec -j -json -o -oneline -p -pretty -r -raw -s -statistics -stats -nm',
    }),
    commands: sameGrammar('action actions chain class filter qdisc', {
      bare: true,
      commands: sameGrammar('list ls show', { operands: { rest: 'text' } }),
    }),
  },
  nstat: {
    // Requires -s, without which it writes its history.
    manual: 'nstat(8), iproute2 6.1',
    options: spellOptions({ flag: '-a -z -s -j -p --ignore --zeros --noupdate --json --pretty' }),
    operands: { rest: 'text' },
    requires: ['-s', '--noupdate'],
    adds: ['-s'],
    refusesOperands: ['^(?![\\w*?]+$)'],
  },
  arping: {
    // Excluded: -U and -A, which announce another address to the neighbours.
    manual: 'arping(8), iputils 20221126',
    options: spellOptions({ flag: '-b -D -f -q -0', name: '-I', count: '-c', wait: '-w' }),
    operands: { first: ['host'], min: 1 },
    requires: ['-c', '-w'],
  },
  ntpdate: { ...oneOf('ntpdate(8), ntp 4.2', '-q', '-d -u -v -4 -6'), operands: { rest: 'host', min: 1 } },
  ipsec: verbs(
    'ipsec(8), strongSwan 5.9, Libreswan 4',
    'status|statusall|trafficstatus|version|listcerts|listpubkeys|leases',
  ),
}
