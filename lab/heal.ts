import { chmodSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { endBackups } from './disk.ts'
import { startHost, startNode } from './lab.ts'
import { runawayOn, squatterOn } from './look.ts'
import { isMetricFault } from './metric-fault-names.ts'
import { takeBackMetric } from './metric-faults.ts'
import { renewSystem } from './packages.ts'
import { processState } from './process.ts'
import { renewSite } from './site.ts'
import {
  configFile,
  desiredConfig,
  type Fault,
  type Lab,
  nodeDirectory,
  saveState,
  storageDirectory,
  writeForNode,
} from './state.ts'
import { bringHome, startVmsOf } from './vm.ts'

/** Takes every fault back, starts what is down, and brings each VM home, so that the next scenario finds the same numbers. */
export async function healAll(lab: Lab): Promise<number> {
  const healed = lab.faults.length
  lab.draining = []
  lab.ports = {}
  for (const fault of lab.faults) await takeBack(lab, fault)
  for (const { id } of lab.topology.nodes) await bringUpNode(lab, id)
  for (const { id } of lab.topology.hosts) await bringUpHost(lab, id)
  await bringHome(lab)
  lab.faults = []
  saveState(lab)
  return healed
}

/**
 * Takes back what one fault did, and starts what it hit, as a person would who repairs only that. Other faults stay, and so does each VM where
 * it is. Answers how many such faults there were.
 */
export async function healOne(lab: Lab, name: Fault['fault'], target: string | null): Promise<number> {
  const isMeant = ({ fault, ...at }: Fault) =>
    fault === name && (target === null || [at.target, at.on].includes(target))
  const meant = lab.faults.filter(isMeant)
  lab.faults = lab.faults.filter((fault) => !isMeant(fault))
  for (const fault of meant) {
    if (fault.fault === 'drain') lab.draining = lab.draining.filter((host) => host !== fault.on)
    if (fault.fault === 'port_squatter') delete lab.ports[fault.on]
    await takeBack(lab, fault)
    forgetFiles(lab, fault)
    if (lab.topology.nodes.some(({ id }) => id === fault.on)) await bringUpNode(lab, fault.on)
    for (const host of fault.hosts) await bringUpHost(lab, host)
  }
  saveState(lab)
  return meant.length
}

/** Faults that were broken in meanwhile found these files among the tenants' data: now it is right that they are gone. */
function forgetFiles(lab: Lab, { on, files }: Fault): void {
  const gone = files.map((file) => relative(lab.dir, join(nodeDirectory(lab, on), file)))
  for (const { tenantData } of lab.faults) for (const file of gone) delete tenantData[file]
}

async function takeBack(lab: Lab, whole: Fault): Promise<void> {
  const { fault, on, files, readOnly } = whole
  if (isMetricFault(fault)) return await takeBackMetric(lab, whole)
  if (fault === 'runaway_process') await lab.children.kill(runawayOn(on))
  if (fault === 'port_squatter') await lab.children.kill(squatterOn(on))
  if (fault === 'backup_notice') await endBackups(lab, on)
  if (fault === 'link_down') lab.linksDown = lab.linksDown.filter((each) => each !== on)
  for (const vm of readOnly) chmodSync(storageDirectory(lab, vm), 0o755)
  for (const file of files) rmSync(join(nodeDirectory(lab, on), file), { force: true })
  const node = lab.topology.nodes.find(({ id }) => id === on)
  if (!node) return
  if (fault === 'bad_deploy') renewSite(lab, node)
  if (fault === 'missing_package') renewSystem(lab, node)
  writeForNode(lab, configFile(lab, node), desiredConfig(lab, node))
}

async function bringUpNode(lab: Lab, id: string): Promise<void> {
  const child = lab.children.get(id)
  if (!child) await startNode(lab, id)
  else if (processState(child.pid) === 'stopped') process.kill(child.pid, 'SIGCONT')
}

async function bringUpHost(lab: Lab, id: string): Promise<void> {
  if (lab.children.get(id)) await startVmsOf(lab, id)
  else await startHost(lab, id)
}
