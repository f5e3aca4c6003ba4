/**
 * Alert rules for the cluster over the metrics of kube-state-metrics, with the names and the form
 * of kube-prometheus and other public collections. Short windows let an alert fire within half a
 * minute.
 */

const clusterRule = (alert: string, severity: string, expr: string, summary: string, more: object = {}) => ({
  alert,
  expr,
  for: '4s',
  keep_firing_for: '20s',
  labels: { severity },
  annotations: { summary },
  ...more,
})

/** Selects the last known value of each series, so that a late scrape does not end an alert. */
const last = (selector: string) => `last_over_time(${selector}[15s])`

export const clusterRules = {
  groups: [
    {
      name: 'kubernetes',
      rules: [
        clusterRule(
          'KubePodCrashLooping',
          'warning',
          'max_over_time(kube_pod_container_status_waiting_reason{reason="CrashLoopBackOff",job="kube-state-metrics"}[40s]) >= 1',
          'Pod is crash looping.',
        ),
        clusterRule(
          'KubePodNotReady',
          'warning',
          `sum by (namespace, pod, job, cluster) (max by (namespace, pod, job, cluster) (${last('kube_pod_status_phase{job="kube-state-metrics",phase=~"Pending|Unknown"}')}) * on (namespace, pod, cluster) group_left (owner_kind) topk by (namespace, pod, cluster) (1, max by (namespace, pod, owner_kind, cluster) (${last('kube_pod_owner{owner_kind!="Job"}')}))) > 0`,
          'Pod has been in a non-ready state for more than 15 minutes.',
          { for: '12s' },
        ),
        clusterRule(
          'KubeContainerWaiting',
          'warning',
          'max_over_time(kube_pod_container_status_waiting_reason{reason!="CrashLoopBackOff",job="kube-state-metrics"}[15s]) > 0',
          'Pod container waiting longer than 1 hour',
          { for: '16s' },
        ),
        clusterRule(
          'KubernetesContainerOomKiller',
          'warning',
          'kube_pod_container_status_last_terminated_reason{reason="OOMKilled",job="kube-state-metrics"} == 1',
          'Kubernetes container oom killer',
        ),
        clusterRule(
          'KubeDeploymentRolloutStuck',
          'warning',
          `${last('kube_deployment_status_condition{condition="Progressing",status="false",job="kube-state-metrics"}')} != 0`,
          'Deployment rollout is not progressing.',
        ),
        clusterRule(
          'KubeDeploymentReplicasMismatch',
          'warning',
          `${last('kube_deployment_spec_replicas{job="kube-state-metrics"}')} > ${last('kube_deployment_status_replicas_available{job="kube-state-metrics"}')}`,
          'Deployment has not matched the expected number of replicas.',
          { for: '12s' },
        ),
        clusterRule(
          'KubernetesPersistentvolumeclaimPending',
          'warning',
          `${last('kube_persistentvolumeclaim_status_phase{phase="Pending",job="kube-state-metrics"}')} == 1`,
          'Kubernetes PersistentVolumeClaim pending',
        ),
        clusterRule(
          'KubeNodeNotReady',
          'critical',
          `${last('kube_node_status_condition{job="kube-state-metrics",condition="Ready",status="true"}')} == 0`,
          'Node is not ready.',
        ),
        clusterRule(
          'KubeNodePressure',
          'warning',
          `${last('kube_node_status_condition{job="kube-state-metrics",condition=~"(MemoryPressure|DiskPressure|PIDPressure)",status="true"}')} == 1`,
          'Node has as active Condition.',
          // Keeps the alert firing, because a kubelet that evicted pods has room for a while.
          { keep_firing_for: '90s' },
        ),
        clusterRule(
          'KubeJobNotCompleted',
          'warning',
          'time() - max by (namespace, job_name, cluster, job) (kube_job_status_start_time{job="kube-state-metrics"} and kube_job_status_active{job="kube-state-metrics"} > 0) > 20',
          'Job did not complete in time',
        ),
        clusterRule(
          'KubeServiceWithoutEndpoints',
          'critical',
          // Finds the service of an endpoint slice: the slice's name is the service's name and five
          // random characters, except for the API server's slice. In most installations, the label
          // "service" alone is the name of the scrape target.
          `label_replace(${last('kube_service_info{job="kube-state-metrics"}')} unless on (namespace, service, cluster) label_replace(${last('kube_endpointslice_endpoints{ready="true"}')}, "service", "$1", "endpointslice", "(.+?)(?:-[a-z0-9]{5})?"), "exported_service", "$1", "service", "(.+)")`,
          'Service has no ready endpoint.',
        ),
      ],
    },
  ],
}
