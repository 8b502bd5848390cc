// A gateway without tokens: its first answer, and an upstream whose pages try to create a token in the name of whoever
// opens them.
//
//	node page_origin.mjs CHROMIUM WORLD
import assert from 'node:assert/strict'
import { desktop, onPage, scenarios, told, withBrowser } from './browser.mjs'

const { executablePath, world } = told()
const may = ['sandbox', 'status of 403', 'ERR_FAILED', 'Failed to fetch', 'frame', 'asks ', 'CORS', 'ERR_BLOCKED']

const tokens = async page => {
  const response = await page.request.get(`${world.base}/v1/tokens`)
  assert.equal(response.status(), 200)
  return (await response.json()).tokens.length
}

const shown = name => async page => {
  const asked = []
  page.on('request', r => { if (r.url().includes('/v1/')) asked.push(r.url()) })
  const response = await page.goto(`${world.base}/harm/${name}`)
  assert.match(response.headers()['content-security-policy'], /(^|, )sandbox$/)
  assert.equal(response.headers()['x-content-type-options'], 'nosniff')
  assert.equal(response.headers()['service-worker-allowed'], undefined)
  assert.deepEqual(asked, [])
  assert.doesNotMatch(await page.title(), /harm/)
  assert.equal((await page.context().cookies()).length, 0)
  assert.equal(await tokens(page), 0)
}

await withBrowser(executablePath, browser => scenarios({
  'the first answer': () => onPage(browser, world, { ...desktop, fresh: true }, async page => {
    await page.goto(world.base + '/')
    assert.equal(await page.locator('.welcome h1').innerText(), 'Nothing has been asked yet')
    const call = await page.request.post(`${world.base}/openai/v1/responses`, { headers: { Authorization: 'Bearer the-key-of-the-test' }, data: { model: 'heron-1', input: 'How many herons nest at Lake Tonbo?' } })
    assert.equal(call.status(), 200)
    await page.waitForSelector('.talk-list li', { timeout: 15000 })
    assert.equal(await page.locator('.welcome').count(), 0)
  }),
  'a page of an upstream': () => onPage(browser, world, { ...desktop, fresh: true, may }, shown('html')),
  'a picture of an upstream': () => onPage(browser, world, { ...desktop, fresh: true, may }, shown('svg')),
  'XHTML of an upstream': () => onPage(browser, world, { ...desktop, fresh: true, may }, shown('xml')),
  'text of an upstream': () => onPage(browser, world, { ...desktop, fresh: true, may }, shown('text')),
  'what says no type': () => onPage(browser, world, { ...desktop, fresh: true, may }, shown('none')),
}))
