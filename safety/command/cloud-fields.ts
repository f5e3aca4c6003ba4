/**
 * Reads `aws … --query`, for calls whose answer has environments, parameters or inputs. Fields
 * without any of these may be shown. Accepts JMESPath's paths, lists, objects of paths and choices,
 * and nothing else.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Calls that read but whose whole answer shows too much. */
export const awsCarriers: ReadonlySet<string> = new Set(
  `lambda list-functions, lambda get-function-configuration, lambda list-versions-by-function, ecs describe-tasks, ecs describe-task-definition,
   cloudformation describe-stacks, cloudformation describe-stack-resource, ssm list-commands, ssm list-command-invocations, glue get-job-runs, codebuild batch-get-builds,
   ec2 describe-spot-instance-requests, ec2 describe-launch-template-versions, ec2 describe-vpn-connections, elbv2 describe-listeners, elbv2 describe-rules,
   stepfunctions describe-execution, emr describe-cluster, emr list-steps, eks describe-addon, cloudfront list-distributions, cloudfront get-distribution,
   batch describe-jobs, apprunner describe-service, elasticbeanstalk describe-environments, sns list-subscriptions, directconnect describe-virtual-interfaces`
    .split(',')
    .map((call) => call.trim()),
)

/**
 * Fields that contain other fields. A query may select a field within these fields, but may not
 * show one of these fields whole.
 */
const around = words(`
  Functions Versions tasks containers taskDefinition containerDefinitions Stacks StackResourceDetail Commands CommandInvocations JobRuns builds
  SpotInstanceRequests LaunchTemplateVersions VpnConnections VgwTelemetry Listeners Rules Cluster Timeline Steps addon health issues DistributionList
  Items Distribution jobs attempts container Service Environments Subscriptions virtualInterfaces DriftInformation Configuration bgpPeers`)
const leaves = words(`
  FunctionName FunctionArn Runtime LastModified MemorySize Timeout State Status StateReason StateReasonCode LastUpdateStatus LastUpdateStatusReason CodeSize
  Version PackageType taskArn taskDefinitionArn lastStatus desiredStatus healthStatus stoppedReason stopCode startedAt stoppedAt createdAt cpu memory
  name exitCode reason image imageDigest launchType availabilityZone family revision status essential StackName StackStatus StackStatusReason
  CreationTime LastUpdatedTime StackDriftStatus ResourceStatus CommandId DocumentName RequestedDateTime StatusDetails InstanceId JobRunState StartedOn
  CompletedOn ExecutionTime Id id buildStatus currentPhase startTime endTime buildNumber SpotInstanceRequestId Code UpdateTime VersionNumber CreateTime
  VpnConnectionId OutsideIpAddress AcceptedRouteCount LastStatusChange Port Protocol SslPolicy ListenerArn RuleArn Priority IsDefault
  executionArn startDate stopDate Name CreationDateTime EndDateTime ReadyDateTime addonName addonVersion code DomainName Enabled LastModifiedTime
  jobId jobName statusReason ServiceName EnvironmentName Health HealthStatus SubscriptionArn TopicArn virtualInterfaceId virtualInterfaceState bgpStatus
  virtualInterfaceName`)

/** Whether the query names only fields that may be shown. */
export function namesShownFields(query: string): boolean {
  if (query.length > 500) return false
  // Removes choices, which compare and print nothing, and literals and labels, which are the
  // query's own words.
  const plain = query
    .replace(/\[\?[^[\]{}()]*\]/g, '[]')
    .replace(/\[-?\d*(?::-?\d*){0,2}\]|\[\*\]/g, '[]')
    .replace(/([{,]\s*)\w+\s*:/g, '$1')
  if (!/^[\w.,{}[\]\s]+$/.test(plain)) return false
  const paths = plain
    .split(/[,{}]|\[(?!\])|(?<!\[)\]/)
    .map((path) => path.replaceAll('[]', '').trim())
    .filter((path) => path !== '' && path !== '.')
  // Allows a name before an opened list or object, because it only leads into it.
  return (
    paths.length > 0 &&
    paths.every((path) => {
      const names = path.split('.').filter((name) => name !== '')
      const last = names.at(-1) ?? ''
      const isPrefix = path.endsWith('.')
      return names.every((name) => leaves.has(name) || around.has(name)) && (isPrefix || leaves.has(last))
    })
  )
}
