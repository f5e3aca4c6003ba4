import { type Grammar, type Grammars, paths, sameGrammar, spellOptions } from '../grammar.ts'

const text = { rest: 'text' } as const
const some = { rest: 'text', min: 1 } as const
const one = (manual: string, flag: string, values = '', operands: Grammar['operands'] = text): Grammar => ({
  manual,
  options: spellOptions({ flag: `${flag} --help`, ...(values ? { text: values } : {}) }),
  operands,
})

const logs: Grammar = {
  manual: 'docker-logs(1), podman-logs(1)',
  options: spellOptions({
    flag: '-f -t --color --follow --names --no-color --no-log-prefix --timestamps --help',
    text: '-n --since --tail --until',
  }),
  operands: text,
  endless: {
    when: ['-f', '--follow'],
    enough: ['-n', '--since', '--tail', '--until'],
    instead: { drop: ['-f', '--follow'], add: ['--tail=200'] },
  },
}
/** Requires named fields, because the whole output shows the environment. */
const inspect: Grammar = {
  manual: 'docker-inspect(1), podman-inspect(1)',
  options: spellOptions({ flag: '-s --size --help', text: '--type', 'fields:container': '-f --format' }),
  operands: some,
  requires: ['-f', '--format'],
}
const inspectWhole = one('docker-network-inspect(1)', '-v --verbose', '-f --format', some)
const list: Grammar = {
  manual: 'docker-ps(1), docker-images(1)',
  options: spellOptions({
    flag: '-a -l -q -s --all --latest --no-trunc --quiet --size --digests --ns --help',
    text: '-f -n --filter --last --sort',
    'fields:list': '--format',
  }),
  operands: text,
}
// Excluded: further words, which are options of ps that may show environments.
const top = one('docker-top(1)', '', '', { first: ['text'], min: 1 })
const stats: Grammar = {
  manual: 'docker-stats(1)',
  options: spellOptions({ flag: '-a --all --no-stream --no-trunc --no-reset', text: '--format' }),
  operands: text,
  endless: { when: 'always', unless: ['--no-stream'], instead: { drop: [], add: ['--no-stream'] } },
}
const events: Grammar = {
  manual: 'docker-events(1)',
  options: spellOptions({ text: '-f --filter --format --since', ago: '--until' }),
  endless: { when: 'always', unless: ['--until'], instead: { drop: [], add: ['--since=10m', '--until=0s'] } },
}

/** Excluded: -H, --context, --config and the like, which connect to another daemon. */
const docker: Grammar = {
  manual: 'docker(1), Docker 24; podman(1), Podman 4.3',
  options: spellOptions({ flag: '-v --version --help' }),
  bare: true,
  commands: {
    ...sameGrammar('diff', one('docker-diff(1)', '', '', some)),
    events,
    // Excluded: history, which shows build arguments, including passwords.
    ...sameGrammar('images', list),
    info: one('docker-info(1)', '', '-f --format', {}),
    inspect,
    logs,
    port: one('docker-port(1)', '', '', some),
    ps: list,
    stats,
    top,
    version: one('docker-version(1)', '', '-f --format', {}),
    compose: {
      // Requires of a named file that only root may write it. Excluded: --env-file, which reads any
      // file.
      manual: 'docker-compose(1)',
      options: spellOptions({ name: '-p --project-name', compose: '-f --file' }),
      commands: {
        ...sameGrammar(
          'images ls port top version',
          one('docker-compose(1)', '-a -q --all --quiet', '--filter --format'),
        ),
        logs,
        ps: one(
          'docker-compose-ps(1)',
          '-a -q --all --quiet --services --no-trunc --orphans',
          '--filter --format --status',
        ),
      },
    },
    container: {
      commands: {
        ...sameGrammar('list ls ps', list),
        diff: one('docker-diff(1)', '', '', some),
        inspect,
        logs,
        port: one('docker-port(1)', ''),
        stats,
        top,
      },
    },
    image: {
      commands: { ...sameGrammar('list ls', list), inspect },
    },
    context: {
      commands: { ls: one('docker-context-ls(1)', '-q --quiet', '--format', {}) },
    },
    node: {
      commands: {
        ls: list,
        inspect: { ...inspectWhole, options: { ...inspectWhole.options, '--pretty': 'flag' } },
        ps: { ...list, options: { ...list.options, '--no-resolve': 'flag' } },
      },
    },
    plugin: { commands: { ls: list } },
    network: { commands: { ...sameGrammar('list ls', list), inspect: inspectWhole } },
    // Excluded: a volume's options, which may include the password of a mount.
    volume: { commands: { ...sameGrammar('list ls', list), inspect } },
    pod: { commands: { ...sameGrammar('list ls ps', list), inspect } },
    service: {
      commands: {
        ls: list,
        ps: one('docker-service-ps(1)', '-q --no-trunc --no-resolve', '-f --filter --format'),
        logs,
        inspect,
      },
    },
    stack: {
      commands: {
        ls: list,
        ps: one('docker-stack-ps(1)', '-q --quiet --no-trunc --no-resolve', '-f --filter --format'),
        services: list,
      },
    },
    system: {
      commands: {
        df: one('docker-system-df(1)', '-v --verbose', '--format', {}),
        events,
        info: one('docker-info(1)', '', '-f --format', {}),
      },
    },
  },
}

const { compose, container: _container, service: _service, ...podmanCommands } = docker.commands!
/**
 * Differs from the grammar of `docker logs`: -n of podman names containers, while -n of docker
 * counts lines.
 */
const podmanLogs: Grammar = {
  ...logs,
  manual: 'podman-logs(1)',
  options: spellOptions({ flag: '-f -t --color --follow --names --timestamps', text: '--since --tail --until' }),
  endless: { ...logs.endless!, enough: ['--since', '--tail', '--until'] },
}

/** Programs for containers on this machine. */
export const containers: Grammars = {
  crictl: {
    manual: 'crictl, cri-tools 1.29',
    options: spellOptions({ runtime: '-r --runtime-endpoint -i --image-endpoint', wait: '-t --timeout' }),
    commands: {
      ...sameGrammar(
        'image images img pods ps',
        one(
          'crictl ps',
          '-a -l -q --all --latest --no-trunc --quiet --digests -o=table --output=table',
          '-n --last --name --namespace --state -s --label --pod -p --image',
        ),
      ),
      // Excluded: formats other than a table, which show annotations and with them a pod's
      // definition. The whole output of inspect shows the environment, that of info the credentials
      // of registries.
      ...sameGrammar('inspect inspectp inspecti', {
        manual: 'crictl inspect',
        options: spellOptions({ 'fields:container': '--template', name: '-o --output', flag: '-q --quiet' }),
        operands: some,
        requires: ['--template'],
        refuses: ['^(json|yaml|table)$'],
      }),
      ...sameGrammar('imagefsinfo version', one('crictl version', '', '-o --output', {})),
      logs,
      ...sameGrammar('stats statsp', one('crictl stats', '-a --all', '-o --output')),
    },
  },
  ctr: {
    manual: 'ctr, containerd 1.6',
    options: spellOptions({ name: '-n --namespace' }),
    commands: {
      ...sameGrammar('c container containers', {
        commands: {
          ...sameGrammar('list ls', one('ctr containers list', '-q --quiet', '', {})),
        },
      }),
      ...sameGrammar('i image images', {
        commands: sameGrammar('list ls', one('ctr images list', '-q --quiet')),
      }),
      ...sameGrammar('t task tasks', {
        commands: {
          ...sameGrammar('list ls', one('ctr tasks list', '-q --quiet', '', {})),
          ...sameGrammar('ps metrics metric', one('ctr tasks ps', '', '--format', some)),
        },
      }),
      ...sameGrammar('snapshot snapshots plugin plugins content lease leases', {
        commands: sameGrammar('list ls', one('ctr(8)', '-q --quiet', '', {})),
      }),
      ...sameGrammar('ns namespace namespaces', {
        commands: sameGrammar('list ls', one('ctr namespaces list', '-q --quiet', '', {})),
      }),
      version: one('ctr version', '', '', {}),
    },
  },
  docker,
  'docker-compose': compose!,
  ...sameGrammar('incus lxc', {
    manual: 'lxc(1), LXD 5.0',
    commands: {
      // Refuses a column that may be a setting, and json and yaml, which print all settings.
      ...sameGrammar('list ls', {
        ...one('lxc list', '', '-c -f --columns --format'),
        refuses: ['[.:]', 'json', 'yaml'],
      }),
      // Allows only lists, because the content of an object may hold a password.
      ...paths('storage|network|profile|cluster|operation|warning|image list', one('lxc list', '', '', {})),
      ...sameGrammar('info', one('lxc info', '--resources', '', { first: ['name'] })),
      version: one('lxc version', '', '', {}),
    },
  }),
  ...sameGrammar('lxc-info lxc-ls', {
    manual: 'lxc-info(1), lxc-ls(1), LXC 5.0',
    options: spellOptions({
      flag: '-1 -a -f -H -i -p -s -S --active --fancy --running --stopped --frozen',
      name: '-n --name',
    }),
    operands: { first: ['name'] },
  }),
  podman: {
    ...docker,
    commands: { ...podmanCommands, logs: podmanLogs },
  },
}
