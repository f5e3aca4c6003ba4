import { type Grammars, paths, sameGrammar, spellOptions, verbs } from '../grammar.ts'

/** Clusters that compute, with their file systems and queues of jobs; switches and hypervisors. */
export const batch: Grammars = {
  ...sameGrammar('mmgetstate mmlscluster mmlsfs mmlsdisk mmlsmount mmlsnsd mmlspool mmlsfileset mmdf', {
    manual: 'IBM Storage Scale 5.1: command reference',
    options: spellOptions({ flag: '-a -L -s -v -Y -m -X -M --block-size=auto', name: '-N -d -P' }),
    operands: { rest: 'name' },
  }),
  mmhealth: {
    manual: 'mmhealth, IBM Storage Scale 5.1',
    commands: paths('node show, cluster show', {
      options: spellOptions({ flag: '-v -Y --unhealthy --verbose', name: '-N' }),
      operands: { rest: 'name' },
    }),
  },
  lfs: verbs(
    'lfs(1), Lustre 2.15',
    'df|osts|mdts|quota|check',
    spellOptions({ flag: '-h -i -l -v -q -g --lazy', name: '-u' }),
  ),
  // set_param, conf_param and pool_ verbs act; a parameter is a name with dots.
  lctl: verbs(
    'lctl(8), Lustre 2.15',
    'dl|device_list|list_nids|get_param|list_param|which_nid|network',
    spellOptions({ flag: '-t -n -N -F' }),
  ),
  lnetctl: verbs(
    'lnetctl(8), Lustre 2.15',
    'net|peer|route|routing|stats|global|udsp|numa show',
    spellOptions({ flag: '-v --verbose', name: '--net --nid' }),
  ),
  ...sameGrammar('sstat seff', {
    manual: 'sstat(1), seff(1), Slurm 22.05',
    options: spellOptions({
      flag: '-a -n -P -p --noheader --parsable --allsteps',
      text: '-o --format',
      name: '-j --jobs',
    }),
    operands: { first: ['name'] },
  }),
  ...sameGrammar('qstat pbsnodes qhost', {
    // -o, -r, -c and -N of pbsnodes mark nodes.
    manual: 'qstat(1B), pbsnodes(8B), OpenPBS 22; qhost(1), Grid Engine 8',
    options: spellOptions({ flag: '-a -f -i -n -s -w -x -l -q -Q -B -S -j -v', name: '-u -F' }),
    operands: { rest: 'name' },
    requires: ['-a', '-f', '-l', '-u', '-q', '-Q', '-B', '-n', '-s', '-j', '-v', '-w', '-x', '-i', '-S', '-F'],
  }),
  ...sameGrammar('bjobs bhosts bqueues lsload lsid', {
    manual: 'bjobs(1), bhosts(1), IBM Spectrum LSF 10.1',
    options: spellOptions({ flag: '-a -l -p -r -s -w -aff -sum', name: '-u -q -m -J -P' }),
    operands: { rest: 'name' },
    style: 'word',
  }),
  esxcli: {
    // The last word is the verb, and set, add, remove and kin are not among these.
    manual: 'ESXCLI reference, vSphere 8',
    options: spellOptions({ name: '-d --device -n --nic-name -N --netstack -p -w --world-id', flag: '-a' }),
    operands: { rest: 'name', min: 3 },
    refusesOperands: [
      '^(?!(network|vm|storage|system|hardware|core|device|path|adapter|nic|ip|interface|ipv4|ipv6|neighbor|connection|filesystem|process|version|software|vib|profile|stats|uptime|hostname|maintenanceMode|vsan|health|cluster|nmp|satp|psp|iscsi|portal|vmfs|extent|snapshot|vswitch|standard|dvs|vmware|portgroup|firewall|ruleset|memory|cpu|pci|platform|boot|time|clock|smart|list|get)$)',
    ],
  },
  nv: {
    // NVIDIA's NVUE, which came after NCLU: `nv config` and what is neither show nor below it sets.
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
