import { jobEndless, webhookExpired, wrongSelector } from './calls.ts'
import type { ClusterFault } from './faults.ts'
import { crashLoop, imagePull, outOfMemory, probeFails, redHerring } from './rollouts.ts'
import { diskPressure, nodeNotReady, noRoom, quota, volumeUnbound } from './room.ts'
import type { ClusterFaultWork } from './work.ts'

export const clusterFaultWork: Record<ClusterFault, ClusterFaultWork> = {
  k8s_crash_loop: crashLoop,
  k8s_image_pull: imagePull,
  k8s_out_of_memory: outOfMemory,
  k8s_probe_fails: probeFails,
  k8s_no_room: noRoom,
  k8s_volume_unbound: volumeUnbound,
  k8s_node_not_ready: nodeNotReady,
  k8s_quota: quota,
  k8s_wrong_selector: wrongSelector,
  k8s_webhook_expired: webhookExpired,
  k8s_job_endless: jobEndless,
  k8s_disk_pressure: diskPressure,
  k8s_red_herring: redHerring,
}
