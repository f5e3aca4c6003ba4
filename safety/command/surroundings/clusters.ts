import type { Surroundings } from '../surroundings.ts'

const kubeconfig: Surroundings = {
  manual: 'kubectl reference, Kubernetes 1.29: client authentication, kuberc',
  reach: 'network',
  obeys: '~/.kube/config: programs for credentials, files of tokens, proxies; ~/.kube/kuberc: aliases',
  switches: { KUBERC: 'off' },
  conditions: [{ kind: 'kubeconfig' }],
}

const docker: Surroundings = {
  manual: 'docker(1), Docker 24: configuration files, plug-ins, contexts',
  reach: 'network',
  obeys: '~/.docker/config.json: another host (currentContext), plug-ins, aliases; ~/.docker/cli-plugins',
  conditions: [{ kind: 'docker_settings' }, { kind: 'root_only', files: ['~/.docker/cli-plugins'] }],
}

const compose: Surroundings = {
  manual: 'docker-compose(1): compose files, .env, include',
  reach: 'network',
  obeys: 'what docker obeys; compose files and .env here and above, which include others',
  conditions: [
    ...docker.conditions!,
    {
      kind: 'root_only',
      up: true,
      files: ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml', '.env'],
    },
  ],
}

/** What schedules containers and virtual machines, and what reaches into them. */
export const clusters: [string, Surroundings][] = [
  ['kubectl', kubeconfig],
  ['oc', kubeconfig],
  [
    'helm',
    {
      ...kubeconfig,
      manual: 'helm(1), Helm 3.14: helm env, plugins',
      obeys: `what kubectl obeys; plug-ins of the user`,
      switches: { HELM_NO_PLUGINS: '1', HELM_PLUGINS: '/nonexistent' },
      conditions: [
        ...kubeconfig.conditions!,
        { kind: 'root_only', files: ['~/.local/share/helm/plugins', '~/.config/helm/repositories.yaml'] },
      ],
    },
  ],
  ['docker', docker],
  ['docker compose', compose],
  ['docker-compose', compose],
  [
    'podman',
    {
      manual: 'podman(1), Podman 4.3: containers.conf(5), storage.conf(5)',
      reach: 'network',
      obeys: '~/.config/containers: runtimes, hooks, helper programs, connections',
      conditions: [{ kind: 'root_only', files: ['~/.config/containers', '~/.config/cni'] }],
    },
  ],
  ...['incus', 'lxc'].map((name): [string, Surroundings] => [
    name,
    {
      manual: 'lxc(1), LXD 5.0: aliases, remotes',
      reach: 'network',
      obeys: "the user's config.yml: aliases of commands, another host as the default",
      conditions: [
        {
          kind: 'root_only',
          files: ['~/.config/lxc/config.yml', '~/.config/incus/config.yml', '~/snap/lxd/common/config/config.yml'],
        },
      ],
    },
  ]),
  [
    'virsh',
    {
      manual: 'virsh(1), libvirt 9.0: uri_default, uri_aliases',
      reach: 'service',
      obeys: '~/.config/libvirt/libvirt.conf: another hypervisor, reached by a program of its choice',
      conditions: [{ kind: 'root_only', files: ['~/.config/libvirt/libvirt.conf'] }],
    },
  ],
  [
    'ssh',
    {
      manual: 'ssh_config(5), OpenSSH 9.2',
      reach: 'network',
      obeys: '~/.ssh/config: ProxyCommand, Match exec, LocalCommand, KnownHostsCommand, other hosts by the same name',
      conditions: [{ kind: 'root_only', files: ['~/.ssh/config', '~/.ssh/rc'] }],
    },
  ],
]
