import type { PlaceRule, ProgramSurroundings } from '../surroundings.ts'

const kubeconfig: ProgramSurroundings = {
  manual: 'kubectl reference, Kubernetes 1.29: client authentication, kuberc',
  reach: 'network',
  obeys: '~/.kube/config: programs for credentials, files of tokens, proxies; ~/.kube/kuberc: aliases',
  switches: { KUBERC: 'off' },
  conditions: [{ kind: 'kubeconfig' }],
}

const docker: ProgramSurroundings = {
  manual: 'docker(1), Docker 24: configuration files, plug-ins, contexts',
  reach: 'network',
  obeys: '~/.docker/config.json: another host (currentContext), plug-ins, aliases; ~/.docker/cli-plugins',
  conditions: [{ kind: 'docker_settings' }, { kind: 'root_only', files: ['~/.docker/cli-plugins'] }],
}

const compose: ProgramSurroundings = {
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
  obeysFilesOf: ['-f', '--file'],
}

/** Schedulers of containers and virtual machines, and programs that reach into them. */
export const clusters: [string, ProgramSurroundings][] = [
  ['kubectl', kubeconfig],
  ['oc', kubeconfig],
  ['k3s', { ...kubeconfig, manual: 'k3s(1), k3s 1.29' }],
  ['microk8s', { ...kubeconfig, manual: 'microk8s(1), MicroK8s 1.29' }],
  ['microk8s.kubectl', { ...kubeconfig, manual: 'microk8s(1), MicroK8s 1.29' }],
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
  ...['incus', 'lxc'].map((name): [string, ProgramSurroundings] => [
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

const rootOnly = (...files: string[]): PlaceRule => ({ kind: 'root_only', files })
const each = (names: string, row: ProgramSurroundings): [string, ProgramSurroundings][] =>
  names.split(' ').map((name) => [name, row])

/**
 * Keys in the two files of aws that determine who connects and where. `credential_process` and
 * plug-ins are excluded, because they start programs.
 */
const awsKeys = (
  'aws_access_key_id aws_secret_access_key aws_session_token region output role_arn source_profile role_session_name external_id ' +
  'duration_seconds mfa_serial sso_start_url sso_region sso_account_id sso_role_name sso_session sso_registration_scopes retry_mode max_attempts'
).split(' ')

/** Clients of clouds and of storage clusters. */
export const clouds: [string, ProgramSurroundings][] = [
  ...each('aws', {
    manual: 'aws(1), AWS CLI 2: configuration files, aliases',
    reach: 'network',
    obeys: '~/.aws: programs for credentials, plug-ins, aliases that run programs, other endpoints',
    switches: { AWS_PAGER: '', AWS_CLI_AUTO_PROMPT: 'off' },
    conditions: [
      { kind: 'plain_settings', file: '~/.aws/config', keys: awsKeys },
      { kind: 'plain_settings', file: '~/.aws/credentials', keys: awsKeys },
      rootOnly('~/.aws/cli', '~/.aws/models'),
    ],
  }),
  ...each('az', {
    manual: 'az(1), Azure CLI 2: configuration, extensions, aliases',
    reach: 'network',
    obeys: '~/.azure: extensions, aliases, other endpoints',
    switches: { AZURE_EXTENSION_DIR: '/nonexistent', AZURE_CORE_COLLECT_TELEMETRY: 'no' },
    conditions: [
      {
        kind: 'plain_settings',
        file: '~/.azure/config',
        keys: ['name', 'output', 'collect_telemetry', 'location', 'group'],
      },
      rootOnly('~/.azure/alias', '~/.azure/cliextensions', '~/.azure/clouds.config'),
    ],
  }),
  ...each('gcloud', {
    manual: 'gcloud(1), Google Cloud CLI: configurations, properties',
    reach: 'network',
    obeys: '~/.config/gcloud: other endpoints, proxies, files of credentials',
    switches: { CLOUDSDK_CORE_DISABLE_PROMPTS: '1', CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK: '1' },
    conditions: [
      {
        kind: 'plain_settings',
        file: '~/.config/gcloud/configurations/config_default',
        keys: ['account', 'project', 'region', 'zone', 'disable_usage_reporting'],
      },
      rootOnly('~/.config/gcloud/active_config', '~/.config/gcloud/properties'),
    ],
  }),
  ...each('ceph ceph-volume rados rbd', {
    manual: 'ceph(8), ceph-conf(8): search of the configuration file',
    reach: 'network',
    obeys: 'ceph.conf of the directory and of ~/.ceph: another cluster, files to write, plug-ins',
    conditions: [rootOnly('ceph.conf', '~/.ceph')],
  }),
]
