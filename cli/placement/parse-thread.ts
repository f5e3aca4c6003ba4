import { parentPort, workerData } from 'node:worker_threads'
import { type ParseTask, parse } from './parse.ts'

parentPort?.postMessage(parse(workerData as ParseTask))
