// SPDX-License-Identifier: Apache-2.0

// Renders a Helm chart as `helm template` does, with Helm's own parts: text/template, sprig, sigs.k8s.io/yaml.
// usage: render_chart CHART RELEASE [VALUES...]    all objects as one YAML stream on standard output
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

func read(path string) object {
	text, err := os.ReadFile(path)
	check(err)
	result := object{}
	check(yaml.UnmarshalStrict(text, &result))
	return result
}

// merge puts what is in over onto base; a value that the chart does not know is an error. An empty map takes any.
func merge(base, over object, path string) {
	isOpen := len(base) == 0
	for name, value := range over {
		known, exists := base[name]
		if !exists && !isOpen {
			check(fmt.Errorf("%s%s: no such value", path, name))
		}
		below, isObject := known.(object)
		if inner, ok := value.(object); ok && isObject {
			merge(below, inner, path+name+".")
		} else {
			base[name] = value
		}
	}
}

func functions(set *template.Template) template.FuncMap {
	result := sprig.TxtFuncMap()
	result["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := set.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	result["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	result["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	return result
}

func main() {
	if len(os.Args) < 3 {
		check(fmt.Errorf("usage: render_chart CHART RELEASE [VALUES...]"))
	}
	chart, release := os.Args[1], os.Args[2]
	values := read(filepath.Join(chart, "values.yaml"))
	for _, file := range os.Args[3:] {
		merge(values, read(file), "")
	}
	about := read(filepath.Join(chart, "Chart.yaml"))
	data := object{
		"Values":  values,
		"Chart":   object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release": object{"Name": release, "Namespace": "default", "Service": "Helm"},
	}
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	sort.Strings(files)
	set := template.New("chart").Option("missingkey=error")
	set.Funcs(functions(set))
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		_, err = set.New(filepath.Base(file)).Parse(string(text))
		check(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		var out bytes.Buffer
		check(set.ExecuteTemplate(&out, filepath.Base(file), data))
		if text := strings.TrimSpace(out.String()); text != "" {
			fmt.Printf("---\n%s\n", strings.TrimSpace(strings.TrimPrefix(text, "---")))
		}
	}
}
