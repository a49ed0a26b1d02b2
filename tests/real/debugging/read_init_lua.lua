-- What the lines of docs/editors.md give to nvim-dap: each configuration with its adapter, as JSON.
-- The argument is the file with these lines. nvim-dap itself is not here: it has two tables for them.
local dap = { adapters = {}, configurations = {} }
package.loaded["dap"] = dap
dofile(_G.arg[1])

local given = {}
for _, configuration in ipairs(dap.configurations.python) do
  dap.adapters[configuration.type](function(adapter)
    table.insert(given, { configuration = configuration, adapter = adapter })
  end, configuration)
end
io.stdout:write(vim.json.encode(given))
