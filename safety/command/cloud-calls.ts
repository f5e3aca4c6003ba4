/**
 * Calls of three clouds that on-call people use and that show no secret, environment or start
 * script: a service or group, then its operations. Taken from the providers' references (AWS CLI 2,
 * Google Cloud CLI, Azure CLI). Any other call needs approval: a name such as `describe-…` or
 * `show` means a read, but does not tell what is shown.
 */

const calls = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .trim()
      .split('\n')
      .flatMap((line) => {
        const [group = '', operations = ''] = line.split(':')
        return operations
          .trim()
          .split(/\s+/)
          .map((operation) => `${group.trim()} ${operation}`)
      }),
  )

/**
 * Calls of AWS. Excluded are calls that show environments (`lambda list-functions`), user data,
 * headers for origins, inputs and outputs, CHAP or BGP keys.
 */
export const awsCalls = calls(`
  ec2: describe-instances describe-instance-status describe-volumes describe-volume-status describe-volumes-modifications describe-snapshots describe-images
  ec2: describe-subnets describe-vpcs describe-vpc-endpoints describe-vpc-peering-connections describe-security-groups describe-security-group-rules
  ec2: describe-network-acls describe-network-interfaces describe-route-tables describe-internet-gateways describe-nat-gateways describe-transit-gateways
  ec2: describe-transit-gateway-attachments describe-addresses describe-key-pairs describe-regions describe-availability-zones describe-instance-types
  ec2: describe-instance-type-offerings describe-placement-groups describe-reserved-instances describe-spot-price-history describe-flow-logs describe-tags
  ec2: describe-hosts describe-dhcp-options describe-launch-templates describe-vpn-gateways describe-capacity-reservations describe-account-attributes
  ec2: get-ebs-encryption-by-default get-subnet-cidr-reservations
  elb: describe-load-balancers describe-instance-health describe-load-balancer-attributes
  elbv2: describe-load-balancers describe-target-groups describe-target-health describe-load-balancer-attributes describe-target-group-attributes
  elbv2: describe-tags describe-account-limits describe-ssl-policies
  autoscaling: describe-auto-scaling-groups describe-auto-scaling-instances describe-scaling-activities describe-policies describe-scheduled-actions
  autoscaling: describe-lifecycle-hooks describe-instance-refreshes describe-load-balancer-target-groups describe-tags describe-warm-pool
  application-autoscaling: describe-scaling-activities describe-scaling-policies describe-scalable-targets
  ecs: list-clusters describe-clusters list-services describe-services list-tasks list-container-instances describe-container-instances
  ecs: list-task-definitions describe-capacity-providers
  eks: list-clusters describe-cluster list-nodegroups describe-nodegroup list-addons describe-addon-versions list-fargate-profiles describe-fargate-profile
  eks: list-updates describe-update list-access-entries list-insights describe-insight
  ecr: describe-repositories describe-images list-images describe-image-scan-findings
  rds: describe-db-instances describe-db-clusters describe-events describe-db-snapshots describe-db-cluster-snapshots describe-db-log-files
  rds: describe-db-parameters download-db-log-file-portion describe-db-subnet-groups describe-pending-maintenance-actions describe-db-engine-versions describe-global-clusters describe-db-cluster-endpoints
  docdb: describe-db-instances describe-db-clusters describe-events
  neptune: describe-db-instances describe-db-clusters describe-events
  elasticache: describe-cache-clusters describe-replication-groups describe-events describe-cache-subnet-groups describe-snapshots describe-service-updates
  memorydb: describe-clusters describe-events
  emr: list-clusters
  mq: list-brokers
  fsx: describe-file-systems
  redshift: describe-clusters describe-events describe-cluster-snapshots
  opensearch: list-domain-names describe-domain describe-domains describe-domain-health
  es: list-domain-names describe-elasticsearch-domain describe-elasticsearch-domains
  dynamodb: list-tables describe-table describe-continuous-backups describe-limits describe-time-to-live list-backups
  s3: ls
  s3api: list-buckets head-bucket head-object get-bucket-location get-bucket-policy get-bucket-policy-status get-bucket-versioning get-bucket-encryption
  s3api: get-bucket-lifecycle-configuration get-bucket-logging get-bucket-replication get-bucket-acl get-bucket-tagging get-bucket-cors
  s3api: list-objects-v2 get-bucket-notification-configuration get-bucket-website get-public-access-block
  logs: describe-log-groups describe-log-streams filter-log-events get-log-events tail get-query-results describe-queries describe-metric-filters
  cloudwatch: describe-alarms describe-alarm-history describe-alarms-for-metric list-metrics get-metric-statistics get-metric-data list-dashboards get-dashboard
  cloudtrail: lookup-events describe-trails get-trail-status list-trails
  iam: list-users list-roles list-policies list-groups list-attached-role-policies list-attached-user-policies list-attached-group-policies list-role-policies
  iam: list-user-policies list-instance-profiles list-access-keys list-account-aliases list-mfa-devices list-server-certificates get-user get-role get-group
  iam: get-policy get-policy-version get-role-policy get-account-summary get-account-password-policy get-instance-profile simulate-principal-policy
  sts: get-caller-identity
  lambda: get-function-concurrency list-event-source-mappings get-account-settings list-aliases list-layers get-policy list-provisioned-concurrency-configs
  sqs: list-queues get-queue-attributes get-queue-url
  sns: list-topics get-topic-attributes
  kinesis: list-streams describe-stream-summary describe-stream list-shards
  kafka: list-clusters list-clusters-v2 describe-cluster list-nodes get-bootstrap-brokers
  route53: list-hosted-zones list-resource-record-sets get-hosted-zone get-change list-health-checks get-health-check get-health-check-status
  acm: list-certificates describe-certificate
  ssm: describe-instance-information describe-parameters describe-instance-patch-states describe-maintenance-windows
  secretsmanager: list-secrets describe-secret
  kms: list-keys list-aliases describe-key get-key-policy get-key-rotation-status
  cloudformation: list-stacks describe-stack-events describe-stack-resources list-stack-resources
  elasticbeanstalk: describe-environments describe-events describe-environment-health describe-instances-health
  stepfunctions: list-state-machines list-executions
  batch: describe-job-queues describe-compute-environments list-jobs
  health: describe-events describe-event-details describe-affected-entities
  support: describe-cases describe-trusted-advisor-checks
  ce: get-cost-and-usage get-cost-forecast get-dimension-values
  xray: get-trace-summaries get-service-graph
  guardduty: list-detectors get-detector list-findings get-findings
  configservice: describe-config-rules describe-compliance-by-config-rule get-compliance-details-by-config-rule
  service-quotas: get-service-quota list-service-quotas
  organizations: describe-organization list-accounts describe-account list-roots
  efs: describe-file-systems describe-mount-targets describe-access-points
  backup: list-backup-jobs describe-backup-job list-recovery-points-by-backup-vault list-backup-vaults list-backup-plans get-backup-plan list-restore-jobs
  dms: describe-replication-tasks describe-replication-instances
  wafv2: list-web-acls get-web-acl
  codepipeline: list-pipelines get-pipeline-state list-pipeline-executions
  codedeploy: list-deployments get-deployment
  events: list-rules describe-rule
  resourcegroupstaggingapi: get-resources
`)

/** Groups of Google Cloud, without `alpha` and `beta`, which may precede them. */
export const gcloudCalls = calls(`
  compute instances: list describe
  compute disks: list describe
  compute snapshots: list describe
  compute images: list describe
  compute networks: list describe
  compute networks subnets: list describe
  compute firewall-rules: list describe
  compute routers: list describe get-status
  compute routes: list describe
  compute addresses: list describe
  compute forwarding-rules: list describe
  compute backend-services: list describe get-health
  compute health-checks: list describe
  compute url-maps: list describe
  compute target-http-proxies: list describe
  compute target-https-proxies: list describe
  compute target-pools: list describe get-health
  compute ssl-certificates: list describe
  compute machine-types: list describe
  compute zones: list describe
  compute regions: list describe
  compute operations: list describe
  compute instance-groups: list describe list-instances
  compute instance-groups managed: list describe list-instances list-errors
  compute instance-groups unmanaged: list describe list-instances
  compute instance-templates: list describe
  compute reservations: list describe
  compute vpn-tunnels: list
  compute vpn-gateways: list describe
  compute security-policies: list describe
  container: get-server-config
  container clusters: list describe
  container node-pools: list describe
  container operations: list describe
  sql instances: list describe
  sql databases: list describe
  sql backups: list describe
  sql operations: list describe
  run services: list describe
  run revisions: list describe
  run jobs: list describe
  run jobs executions: list describe
  functions: list describe
  pubsub topics: list describe
  storage: ls
  logging: read
  logging logs: list
  logging metrics: list describe
  logging sinks: list describe
  monitoring policies: list describe
  monitoring dashboards: list describe
  dns managed-zones: list describe
  dns record-sets: list
  iam service-accounts: list describe get-iam-policy
  iam roles: list describe
  projects: list describe get-iam-policy
  organizations: list describe
  resource-manager folders: list describe
  storage buckets: list describe
  redis instances: list describe
  memcache instances: list describe
  filestore instances: list describe
  app versions: list
  app services: list
  artifacts repositories: list describe
  artifacts docker images: list
  builds: list describe log
  builds triggers: list
  dataflow jobs: list
  dataproc clusters: list
  composer environments: list
  secrets: list describe
  secrets versions: list
  spanner instances: list describe
  spanner databases: list describe
  bigtable instances: list describe
  bigtable clusters: list describe
  scheduler jobs: list
  tasks queues: list describe
  kms keyrings: list
  kms keys: list describe
  services: list
  billing accounts: list
  auth: list
  config: list get-value get
`)

/**
 * Calls about resources with environments, metadata or start scripts. Only named fields of these
 * may be shown.
 */
export const gcloudCarriers = calls(`
  compute instances: list describe
  compute instance-templates: list describe
  container clusters: list describe
  container node-pools: list describe
  run services: list describe
  run revisions: list describe
  run jobs: list describe
  run jobs executions: list describe
  functions: list describe
  app versions: list
  composer environments: list
  builds: list describe
  builds triggers: list
  dataflow jobs: list
  dataproc clusters: list
  scheduler jobs: list
`)

export const azCalls = calls(`
  vm: list show get-instance-view list-ip-addresses list-skus list-sizes list-usage list-vm-resize-options
  vmss: list list-instances get-instance-view
  disk: list show
  snapshot: list show
  image: list show
  network vnet: list show
  network vnet subnet: list show
  network nsg: list show
  network nsg rule: list show
  network nic: list show show-effective-route-table list-effective-nsg
  network public-ip: list show
  network lb: list show
  network lb probe: list show
  network lb rule: list show
  network application-gateway: show-backend-health
  network route-table: list show
  network private-endpoint: list show
  network dns zone: list show
  network dns record-set: list
  aks: list show get-upgrades get-versions
  aks nodepool: list show
  acr: list show check-health show-usage
  acr repository: list show show-tags
  sql server: list show
  sql db: list show list-usages
  sql elastic-pool: list show
  postgres flexible-server: list show
  mysql flexible-server: list show
  mysql server: list show
  postgres server: list show
  network watcher: show-next-hop show-topology test-ip-flow
  redis: list
  cosmosdb: list show
  storage account: list show show-usage
  monitor activity-log: list
  monitor metrics: list list-definitions
  monitor metrics alert: list show
  monitor log-analytics workspace: list show
  webapp: list show
  functionapp: list show
  appservice plan: list show
  servicebus namespace: list show
  servicebus queue: list show
  eventhubs namespace: list show
  eventhubs eventhub: list show
  keyvault: list
  role assignment: list
  role definition: list
  advisor recommendation: list
  policy state: list
  provider: list
  resource: list
  group: list show exists
  account: list show list-locations
`)
