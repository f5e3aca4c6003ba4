import { join } from 'node:path'
import { writeWhole } from '../children.ts'
import { clusterTargetsFile, freePort } from '../monitoring.ts'
import type { Lab } from '../state.ts'
import type { LabCluster } from './drawer.ts'
import { clusterSource } from './faults.ts'
import { clusterProgram } from './programs.ts'

/** Starts kube-state-metrics for the cluster, and adds it to the lab's running Prometheus. */
export async function watchCluster(lab: Lab, { kubeconfig }: LabCluster): Promise<void> {
  const [port, telemetry] = [await freePort(), await freePort()]
  await lab.children.start('kube-state-metrics', 'server.ts', lab.dir, {
    account: null,
    program: clusterProgram('kube-state-metrics'),
    args: [
      `--kubeconfig=${kubeconfig}`,
      '--host=127.0.0.1',
      `--port=${port}`,
      '--telemetry-host=127.0.0.1',
      `--telemetry-port=${telemetry}`,
    ],
    port,
    ready: '/metrics',
  })
  // Gives the series the labels that they have inside a cluster. The label `cluster` is the name of
  // the cluster's source.
  const labels = { job: 'kube-state-metrics', instance: '10.88.1.7:8080', cluster: clusterSource }
  writeWhole(
    join(lab.dir, 'monitoring', clusterTargetsFile),
    JSON.stringify([{ targets: [`127.0.0.1:${port}`], labels }]),
  )
}
