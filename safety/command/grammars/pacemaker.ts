import { type Grammars, oneOf, paths, plain, sameGrammar, spellOptions } from '../grammar.ts'

const pcs = 'pcs(8), pcs 0.11'
const pacemaker = 'Pacemaker 2.1'

/** Failover clusters: Pacemaker and Corosync, by their shells and programs. */
export const failover: Grammars = {
  pcs: {
    // Excluded: config, cib, and a fence device by its name, which print passwords of fence
    // devices.
    manual: pcs,
    options: spellOptions({ flag: '--full --all --hide-inactive' }),
    commands: {
      ...paths(
        'status resources|cluster|nodes|corosync|quorum|xml|pcsd, resource|stonith status|list, resource failcount show, resource relations, stonith history show, cluster status|corosync, quorum status|config, quorum device status, constraint list, property list, host list, alert show',
        plain(pcs),
      ),
      // Refuses `name=value` after a node, which sets.
      node: {
        commands: sameGrammar('attribute utilization', { operands: { first: ['name'] }, refusesOperands: ['='] }),
      },
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
    // Requires -1, without which the program never ends. Excluded: -E runs a program, -h and
    // --as-html write.
    ...oneOf(
      'crm_mon(8)',
      '-1 --one-shot',
      '-A -b -c -f -j -n -N -o -r -R -t -V --inactive --failcounts --group-by-node --show-detail',
    ),
  },
  crm_verify: oneOf('crm_verify(8), Pacemaker 2.1', '-L --live-check', '-V --verbose'),
  'corosync-cfgtool': oneOf('corosync-cfgtool(8), 3.1', '-s -n -b'),
  crm_node: oneOf(`crm_node(8), ${pacemaker}`, '-l -i -n -p -q -L --list --cluster-id --name --partition --quorum'),
  crm_attribute: {
    ...oneOf(
      `crm_attribute(8), ${pacemaker}`,
      '-G --query',
      '-q --quiet',
      '-n --name -t --type -N --node -l --lifetime',
    ),
    refuses: ['pass', 'secret', 'key', 'token'],
  },
  // Allows only keys with these prefixes, because a value below `totem` may be the secret key of
  // the cluster.
  'corosync-cmapctl': {
    manual: 'corosync-cmapctl(8), 3.1',
    options: spellOptions({ flag: '-b', text: '-g' }),
    operands: { first: ['text'], unlessOption: ['-g'], min: 1 },
    refuses: ['^(?!(runtime|stats|nodelist|quorum)\\.)'],
  },
  'corosync-quorumtool': oneOf('corosync-quorumtool(8), 3.1', '-s -l', '-i -p'),
  crm_simulate: {
    // Excluded: -S works on a copy of the state; -G, -D, -O and the like write files.
    ...oneOf(
      `crm_simulate(8), ${pacemaker}`,
      '-L --live-check',
      '-s -a -V -U --show-scores --all-actions --show-utilization',
    ),
  },
  crm_resource: {
    // Excluded: all other options, which move, ban, clean or set; -Q and -q, which print
    // parameters, including passwords.
    manual: `crm_resource(8), ${pacemaker}`,
    options: spellOptions({
      flag: '-l -L -O -W -a -A --list-raw --list --list-operations --list-all-operations --locate --constraints --stack --why -Y -V',
      name: '-r --resource -N --node --output-as',
    }),
    requires: [
      '-l',
      '-L',
      '-O',
      '-W',
      '-a',
      '-A',
      '--list-raw',
      '--list',
      '--list-operations',
      '--locate',
      '--constraints',
      '--why',
    ],
  },
  stonith_admin: {
    manual: `stonith_admin(8), ${pacemaker}`,
    options: spellOptions({ flag: '-L -I --list-registered --list-installed -V', name: '-l -H --list --history' }),
    requires: ['-L', '-I', '-l', '-H', '--list-registered', '--list-installed', '--list', '--history'],
  },
}
