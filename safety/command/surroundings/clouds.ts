import type { Rule, Surroundings } from '../surroundings.ts'

const rootOnly = (...files: string[]): Rule => ({ kind: 'root_only', files })
const each = (names: string, row: Surroundings): [string, Surroundings][] => names.split(' ').map((name) => [name, row])

/** Keys of the two files of aws that say who connects and where; `credential_process` and plug-ins start programs. */
const awsKeys = (
  'aws_access_key_id aws_secret_access_key aws_session_token region output role_arn source_profile role_session_name external_id ' +
  'duration_seconds mfa_serial sso_start_url sso_region sso_account_id sso_role_name sso_session sso_registration_scopes retry_mode max_attempts'
).split(' ')

/** Clients of clouds and of storage clusters. */
export const clouds: [string, Surroundings][] = [
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
