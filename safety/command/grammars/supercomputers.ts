import { flags, type Grammars, paths, sameGrammar, spellOptions, verbs } from '../grammar.ts'

/** Programs of computing clusters: their file systems, networks and job queues. */
export const supercomputers: Grammars = {
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
  // Excluded: set_param, conf_param and pool_ verbs, which change something. A parameter is a name
  // with dots.
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
    // Excluded: -o, -r, -c and -N of pbsnodes, which mark nodes.
    manual: 'qstat(1B), pbsnodes(8B), OpenPBS 22; qhost(1), Grid Engine 8',
    // Excluded: a whole job (-f, -j), which is shown with its environment.
    options: spellOptions({ flag: '-a -i -n -s -w -x -l -q -Q -B -S -v', name: '-u -F' }),
    operands: { rest: 'name' },
    requires: ['-a', '-l', '-u', '-q', '-Q', '-B', '-n', '-s', '-v', '-w', '-x', '-i', '-S', '-F'],
  }),
  ...sameGrammar('bjobs bhosts bqueues lsload lsid', {
    manual: 'bjobs(1), bhosts(1), IBM Spectrum LSF 10.1',
    options: spellOptions({ flag: '-a -l -p -r -s -w -aff -sum', name: '-u -q -m -J -P' }),
    operands: { rest: 'name' },
    style: 'word',
  }),
  fi_info: flags('fi_info(1), libfabric 1.17', '-l -e -g -v', '-p -d -f -t -c -n', {}),
}
