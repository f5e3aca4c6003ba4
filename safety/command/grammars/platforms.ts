import { type Grammars, paths, plain, sameGrammar, spellOptions, verbs } from '../grammar.ts'

const gh = 'gh, GitHub CLI 2.40'
const glab = 'glab, GitLab CLI 1.36'
const output = spellOptions({ name: '-o --output' })
/**
 * Allows a repository of the host that is signed in. A name with two slashes would begin with
 * another host.
 */
const repository = spellOptions({ name: '-R --repo' })

/**
 * Clients of platforms over the network: repositories, pipelines, clouds, job schedulers,
 * monitoring.
 */
export const platforms: Grammars = {
  openstack: { manual: 'openstack, python-openstackclient 6', cloud: 'openstack' },
  hcloud: { manual: 'hcloud, 1.42', cloud: 'hcloud' },
  doctl: { manual: 'doctl, 1.104', cloud: 'doctl' },
  gh: {
    // Excluded: --web opens a browser, --watch never ends, a template may print anything; api
    // changes the method once it has a field, and a search sends its words to the platform.
    manual: gh,
    options: { ...repository, ...spellOptions({ flag: '--version' }) },
    bare: true,
    commands: {
      ...paths('pr|issue status, status, version', plain(gh)),
      ...sameGrammar('run', {
        commands: sameGrammar('list ls view', {
          options: spellOptions({
            flag: '--log --log-failed -v --verbose --exit-status -a --all',
            number: '-L --limit --attempt',
            text: '-b --branch -c --commit --created -e --event --json -s --status -u --user -w --workflow -j --job',
            jq: '-q --jq',
          }),
          operands: { first: ['number'] },
        }),
      }),
      ...sameGrammar('pr issue release workflow cache label ruleset', {
        commands: {
          ...sameGrammar('list ls view diff checks status', {
            options: spellOptions({
              flag: '-c --comments --name-only --patch --required -d --draft -a --all -p --parents --exclude-drafts --exclude-pre-releases --yaml -y',
              number: '-L --limit',
              text: '-A --author --assignee -B --base -H --head --json -l --label -s --state -S --search -r --ref -O --order --sort -k --key --color',
              jq: '-q --jq',
            }),
            operands: { rest: 'name' },
          }),
        },
      }),
      repo: {
        commands: sameGrammar('list view', {
          options: spellOptions({
            number: '-L --limit',
            text: '--json --visibility --language',
            jq: '-q --jq',
            flag: '--archived --fork --source',
          }),
          operands: { first: ['name'] },
        }),
      },
      api: {
        options: spellOptions({ flag: '--paginate --silent -i --include', jq: '-q --jq' }),
        operands: { first: ['text'], min: 1 },
        refusesOperands: [
          '^(?!/?(rate_limit|repos/[\\w.-]+/[\\w.-]+(/(actions/(runs|jobs|workflows|caches|runners)|commits|pulls|issues|releases|branches|tags|deployments|check-runs|check-suites|events|compare|contributors|git/refs|status)(/[\\w.-]+)*)?)(\\?[\\w=&.:%+-]*)?$)',
          '\\.\\.',
          '/(token|registration-token|remove-token|logs|zip)\\b',
        ],
      },
    },
  },
  glab: {
    manual: glab,
    options: { ...repository, ...spellOptions({ flag: '--version' }) },
    bare: true,
    commands: {
      version: plain(glab),
      ...sameGrammar('mr issue release incident label', {
        commands: sameGrammar('list ls view show diff', {
          options: spellOptions({
            flag: '-a --all -c --closed -m --merged -d --draft --comments --raw --color=never',
            number: '-p -P --page --per-page',
            text: '--author --assignee --label --search --state -F --output --milestone -s --source-branch -t --target-branch',
          }),
          operands: { rest: 'name' },
        }),
      }),
      ...sameGrammar('ci pipeline pipe', {
        commands: sameGrammar('list ls status get', {
          options: spellOptions({
            number: '-p -P --page --per-page --pipeline-id',
            text: '-b --branch -s --status --sort -F --output -o --orderBy',
            flag: '-c --compact -d --with-job-details',
          }),
        }),
      }),
      repo: {
        commands: sameGrammar(
          'list view',
          plain(glab, spellOptions({ number: '-p -P --page --per-page', text: '-b --branch -F --output' }), {
            operands: { first: ['name'] },
          }),
        ),
      },
    },
  },
  ...sameGrammar(
    'eksctl',
    verbs(
      'eksctl, 0.165',
      'get cluster|clusters|nodegroup|nodegroups|addon|addons, version',
      spellOptions({ name: '--cluster --name -o --output --region -n' }),
    ),
  ),
  'linode-cli': verbs(
    'linode-cli, 5.45',
    'linodes|nodebalancers|volumes|regions|events|domains|firewalls list|view, account view',
    spellOptions({ flag: '--text --json --pretty --no-headers', text: '--format --delimiter' }),
  ),
  ...sameGrammar('fly flyctl', {
    manual: 'flyctl, 0.1',
    options: spellOptions({ name: '-a --app', flag: '--no-tail -j --json' }),
    commands: {
      ...paths('status, apps|machines|machine|regions|volumes|ips list, releases, version', plain('flyctl, 0.1')),
      logs: { requires: ['--no-tail'] },
    },
  }),
  tailscale: {
    manual: 'tailscale(8), 1.56',
    options: spellOptions({ flag: '--json --peers=false --active --self -4 -6' }),
    commands: {
      ...sameGrammar('status netcheck ip version', { operands: { first: ['name'] } }),
    },
  },
  // Excluded: -r of sdiag, which resets its counters.
  sdiag: { manual: 'sdiag(1), Slurm 22.05', options: spellOptions({ flag: '-i -t -T' }) },
  ...sameGrammar('sinfo squeue sprio sshare sacct', {
    // Excluded: -i repeats, -M queries another cluster.
    manual: 'sinfo(1), squeue(1), sacct(1), Slurm 22.05',
    options: spellOptions({
      flag: '-a -h -l -N -e -R -r -s -v -X -P -p --start --me --noheader --long --all --allocations --exact --parsable --parsable2 --responding --summarize --list-reasons --hide --array --duplicates --brief',
      text: '-o -O -t -S -E -n -j -p -q -w -L --nodelist --nodes --name --qos --reservation --licenses --sort --format --Format --states --state --partition --jobs --starttime --endtime',
      name: '-u -A --user --users --account',
    }),
  }),
  scontrol: {
    manual: 'scontrol(1), Slurm 22.05',
    options: spellOptions({ flag: '-d -o --details --oneliner' }),
    commands: {
      ping: {},
      ...paths(
        'show node|nodes|job|jobs|partition|partitions|reservation|reservations|step|steps|topology|hostnames|hostlist|hostlistsorted|license|licenses|assoc_mgr|federation|daemons|aliases|bbstat|burstbuffer|slurmd',
        plain('scontrol(1)'),
      ),
    },
  },
  temporal: verbs(
    'temporal, CLI 0.11',
    'workflow list|describe|count, operator cluster health|describe|system, task-queue describe, operator namespace list|describe, schedule list|describe',
    spellOptions({
      text: '-n --namespace -w --workflow-id -r --run-id -q --query -t --task-queue',
      number: '--limit',
      name: '-o --output',
    }),
  ),
  // Excluded: add, modify, delete and archive, which change something; the configuration and users'
  // coordinators.
  sacctmgr: {
    manual: 'sacctmgr(1), Slurm 22.05',
    options: spellOptions({ flag: '-n -p -P -s --noheader --parsable --parsable2 --associations' }),
    commands: sameGrammar('show list', {
      commands: sameGrammar(
        'account accounts association associations assoc cluster clusters event events federation problem problems qos reservation reservations resource runawayjobs stats transaction tres user users wckey',
        { operands: { rest: 'text' }, refuses: ['^fix$'] },
      ),
    }),
  },
  sreport: verbs(
    'sreport(1), Slurm 22.05',
    'cluster utilization|AccountUtilizationByUser|UserUtilizationByAccount, job SizesByAccount, reservation utilization, user topusage',
    spellOptions({ flag: '-a -n -p -P --all_clusters --noheader --parsable --parsable2', text: '-t -T --tres' }),
  ),
  amtool: {
    // Excluded: add, expire and import, which change something; without one of these it reads.
    manual: 'amtool, Alertmanager 0.26',
    options: spellOptions({ name: '-o --output', url: '--alertmanager.url' }),
    commands: {
      ...sameGrammar('alert silence', {
        ...plain(
          'amtool',
          spellOptions({
            flag: '-a --active -s --silenced -i --inhibited -q --quiet --expired -u --unprocessed',
            text: '--receiver --within --created-by --author',
          }),
        ),
        refusesOperands: ['^(?!query$)\\w+$', '^(?![\\w.-]+(=~?|!=|!~)|query$)'],
      }),
      ...paths(
        'cluster show, config routes show|test',
        plain('amtool', spellOptions({ flag: '-a --active -s --silenced -i --inhibited -q --quiet --expired' })),
      ),
      'check-config': { operands: { first: ['file'], min: 1 }, measures: {} },
    },
  },
  promtool: {
    // Excluded: other verbs, which push, write or send a request to an address. A configuration may
    // name files of secrets, which are read and not printed.
    manual: 'promtool, Prometheus 2.48',
    commands: {
      check: {
        commands: sameGrammar('config rules', { operands: { rest: 'file', min: 1 } }),
      },
    },
  },
  cscli: verbs(
    'cscli, CrowdSec 1.5',
    'decisions|alerts|bouncers|collections|machines|parsers|scenarios|hub list, metrics, version',
    output,
  ),
  'gitlab-ctl': {
    // The first three are Omnibus' own commands; the others read its databases. Excluded: tail
    // never ends, show-config prints every password.
    manual: 'gitlab-ctl, Omnibus GitLab 16: maintenance commands',
    commands: {
      status: { manual: 'gitlab-ctl status', operands: { rest: 'name' } },
      'service-list': { manual: 'gitlab-ctl service-list' },
      ...paths('patroni members, repmgr cluster show, get-postgresql-primary, pgb-console-status, consul members', {
        manual: 'gitlab-ctl, Omnibus GitLab 16',
      }),
    },
  },
  'gitlab-patronictl': {
    // Runs patronictl with the settings of the GitLab package, which only root writes.
    manual: 'gitlab-patronictl, Omnibus GitLab 16; patronictl, Patroni 3.2',
    commands: {
      ...sameGrammar('list topology history', {
        options: spellOptions({ flag: '-e -t --extended --timestamp', name: '-f --format --group' }),
        operands: { rest: 'name' },
      }),
      version: { operands: { rest: 'name' } },
    },
  },
}
